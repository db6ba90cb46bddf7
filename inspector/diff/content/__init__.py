"""The bytes and the numbers of tensors, compared."""
