"""The GPU doctor: why torch can or cannot use a GPU on a machine."""
