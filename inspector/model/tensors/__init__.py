"""Tensors as pickles describe them: rebuild functions, views of storages, element types."""
