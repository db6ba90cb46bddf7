"""Storages that consist of pieces in several files: which piece is where, and how they are read as one."""
