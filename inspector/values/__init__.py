"""The numbers in tensors: what a child process is asked, and what it found."""
