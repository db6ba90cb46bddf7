"""Folders of DeepSpeed: states of all ranks, whose parameters are parts of flat vectors."""
