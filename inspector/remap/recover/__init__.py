"""What is whole in a damaged file, as a checkpoint that loads."""
