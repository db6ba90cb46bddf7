"""What `torch.package` and `torch.export` write: archives with code, and pickles of their own."""
