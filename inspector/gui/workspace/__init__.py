"""What is in sight while a file is open."""
