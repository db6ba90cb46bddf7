"""A checkpoint in another form: the weights alone, a state dict, safetensors."""
