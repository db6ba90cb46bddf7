"""The pages on the right of the window, and the table of them."""
