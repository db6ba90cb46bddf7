"""What happens after `torch.load`: which devices follow from the file, and which from the code."""
