"""What is wrong with a checkpoint, or will be: findings from a table of rules."""
