"""The page of the selected row: its facts, and the values and elements of a tensor."""
