"""TorchScript: a program in text, the objects that it works on as a pickle, and their tensors."""
