import torch
from model import Net

model = Net()
state_dict = torch.load("compiled_cpu.pth", map_location="cpu")
model.load_state_dict(state_dict)
model = torch.compile(model)
