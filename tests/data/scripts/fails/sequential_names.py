import torch
from torch import nn

layers = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()]
layers.append(nn.Linear(8, 2))
model = nn.Sequential(*layers)
model.load_state_dict(torch.load("sd_cpu.pth"))
