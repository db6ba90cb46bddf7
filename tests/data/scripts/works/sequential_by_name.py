import torch
from collections import OrderedDict
from torch import nn

def block(i, o):
    return nn.Linear(i, o)

model = nn.Sequential(OrderedDict([
    ("fc1", block(4, 8)),
    ("bn", nn.BatchNorm1d(8)),
    ("act", nn.ReLU(inplace=True)),
    ("fc2", block(8, 2)),
]))
model.load_state_dict(torch.load("sd_cpu.pth"))
print(model(torch.randn(2, 4)))
