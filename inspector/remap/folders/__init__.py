"""Folders written anew: a copy of one with other devices."""
