"""What the command `remap` does: with one file, or with several into a folder."""
