import torch
from model import Net

path = "sd_cuda.pth"
try:
    state = torch.load(path)
except RuntimeError as e:
    print(f"Error loading: {e}")
    state = torch.load(path, map_location="cpu")
Net().load_state_dict(state)
