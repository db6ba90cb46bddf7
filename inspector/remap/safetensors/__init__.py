"""The safetensors format: what of a state dict it can hold, and the file."""
