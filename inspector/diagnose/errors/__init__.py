"""What a pasted error message means for a file: tables of messages, and how they are matched."""
