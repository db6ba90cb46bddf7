"""Statistics, slices and rows of tensors, from their bytes."""
