import torch
from model import Net

model = Net().cuda()
ckpt = torch.load("sd_cuda1.pth")
model.load_state_dict(ckpt)
