"""Formats of bare arrays: NumPy's npy and npz, and GGUF."""
