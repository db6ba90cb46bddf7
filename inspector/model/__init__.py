"""The model: what the inert values of a pickle mean, as frozen rows of tensors, storages and values."""
