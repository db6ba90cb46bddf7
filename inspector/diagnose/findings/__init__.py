"""The rules that find something in a checkpoint, one table for each kind."""
