"""Where in a file the pickles and the storages' bytes are, and nothing of what they mean."""
