"""What the programs of a file import, call and construct."""
