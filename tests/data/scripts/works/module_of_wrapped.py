import torch
from torch import nn
from model import Net

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = Net()
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)
model.to(device)
state = torch.load("sd_cuda.pth", map_location=device)
if isinstance(model, nn.DataParallel):
    model.module.load_state_dict(state)
else:
    model.load_state_dict(state)
