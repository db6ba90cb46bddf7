import torch
from model import Net

model = Net()
sd = torch.load("sd_cuda1.pth", map_location={"cuda:0": "cuda:1"})
model.load_state_dict(sd)
