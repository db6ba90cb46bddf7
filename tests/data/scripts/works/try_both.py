import torch
from model import Net

model = Net()
checkpoint = torch.load("sd_cpu.pth")
try:
    model.load_state_dict(checkpoint["state_dict"])
except KeyError:
    model.load_state_dict(checkpoint)
