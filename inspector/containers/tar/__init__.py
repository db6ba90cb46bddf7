"""The tar container of torch 0.1, read as Python's `tarfile` does."""
