import torch
from model import Net

device = "cuda"
checkpoint = torch.load("args_cuda.pth", map_location=device)
model = Net().to(device)
model.load_state_dict(checkpoint["model"])
