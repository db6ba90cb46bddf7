"""The export of one window: proposed, carried out, undone."""
