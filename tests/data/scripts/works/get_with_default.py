import torch
from model import Net

model = Net()
ckpt = torch.load("sd_cpu.pth")
model.load_state_dict(ckpt.get("model", ckpt))
