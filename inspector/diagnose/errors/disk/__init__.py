"""Messages about files: where they are, how they are opened, and what is in them."""
