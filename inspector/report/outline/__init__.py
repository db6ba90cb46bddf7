"""What the rows of the tree are made of, and what is asked of them."""
