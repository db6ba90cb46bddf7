"""Plain pickles with other devices in them."""
