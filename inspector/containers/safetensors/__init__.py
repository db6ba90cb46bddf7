"""The safetensors format: a header of JSON, and the bytes of the tensors one behind the other."""
