"""The zip container of torch.save: its records as torch's reader (miniz) finds them."""
