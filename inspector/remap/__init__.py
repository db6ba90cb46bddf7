"""Remapping: from rules to a plan, from a plan to a new pickle, and from that to a new file."""
