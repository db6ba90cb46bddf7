import torch
from model import Net

device = torch.device("cuda")
model = Net()
model.load_state_dict(torch.load("sd_cpu.pth", map_location="cuda:0"))
model.to(device)
