"""What the objects of a script are and do, as far as loading and devices are concerned."""
