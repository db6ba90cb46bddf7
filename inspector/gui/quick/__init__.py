"""What makes the start of PySide quick."""
