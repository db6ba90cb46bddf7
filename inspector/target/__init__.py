"""The machine that a checkpoint shall be loaded on, and what `torch.load` would do there."""
