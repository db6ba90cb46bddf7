"""The page of what the file takes, and its charts."""
