import torch
from model import Net

checkpoint = torch.load("args_cuda.pth", map_location="cpu", weights_only=False)
model = Net()
model.load_state_dict(checkpoint["model"])
