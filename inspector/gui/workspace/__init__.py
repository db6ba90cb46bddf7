"""What is shown while a file is open."""
