"""The objects of a checkpoint, selected and written as a pickle again."""
