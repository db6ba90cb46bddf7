import torch
from model import Net

model = Net().cuda()
model.load_state_dict(torch.load("sd_cuda1.pth", map_location={"cuda:1": "cuda:0"}))
