"""What loading a file would import, and whether torch's `weights_only=True` would take it."""
