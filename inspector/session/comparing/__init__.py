"""The controller of a window that compares two checkpoints."""
