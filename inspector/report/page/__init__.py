"""Answers before they are laid out: blocks that know what they are, and how they read as plain text."""
