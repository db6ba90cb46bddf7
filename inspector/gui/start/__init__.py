"""The window without a file, or with one that cannot be read."""
