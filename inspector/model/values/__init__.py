"""Inert values: their children, and their text."""
