"""What two checkpoints differ in, whatever their formats."""
