"""Output files that appear whole or not at all, and how bytes are copied into them."""
