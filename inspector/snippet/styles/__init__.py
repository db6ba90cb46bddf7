"""One module for each style of loading code, and the table of them."""
