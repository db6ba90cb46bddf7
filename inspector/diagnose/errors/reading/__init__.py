"""A pasted error as a structure: lines, errors, the frames above each, and what the program was doing."""
