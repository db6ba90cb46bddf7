"""The window that compares two checkpoints."""
