"""Two checkpoints compared, as rows, text and JSON."""
