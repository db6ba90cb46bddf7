"""What a tensor is for, and which device it was saved on."""
