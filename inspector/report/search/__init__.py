"""The search language: its words, what they match, and why nothing does."""
