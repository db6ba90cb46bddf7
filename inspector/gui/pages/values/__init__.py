"""The page of the values of the selected tensor."""
