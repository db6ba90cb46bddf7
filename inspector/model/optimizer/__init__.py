"""Optimizer state dicts, and their slots by the name of the parameter."""
