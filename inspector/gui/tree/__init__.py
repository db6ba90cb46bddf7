"""The tree of modules, tensors and optimizer slots."""
