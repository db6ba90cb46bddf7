"""What is said of tensors and values, compared: all but the numbers in them."""
