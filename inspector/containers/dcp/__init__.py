"""Folders of `torch.distributed.checkpoint`: `.metadata`, and `.distcp` files that the ranks wrote."""
