"""The machine that a checkpoint is to be loaded on, and what `torch.load` would do there."""
