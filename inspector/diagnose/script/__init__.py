"""What a Python script does with a file on a machine: read as a tree, followed statement by statement."""
