"""Follows a script: statements, expressions, calls, and the functions of other packages."""
