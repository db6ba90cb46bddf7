"""Checkpoints of several files: folders, and the files that stand for one."""
