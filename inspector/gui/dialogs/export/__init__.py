"""The export dialog, one module for each of its states."""
