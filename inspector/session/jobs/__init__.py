"""Long work of one window: opening a file, checking its bytes, exporting it."""
