import torch
from model import Net

model = Net()
model = model.load_state_dict(torch.load("sd_cpu.pth"))
model.eval()
