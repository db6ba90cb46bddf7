"""Containers: where in a file the pickles are, where the storages' bytes are, and nothing of what they mean."""
