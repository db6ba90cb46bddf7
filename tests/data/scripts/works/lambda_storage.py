import torch
from model import Net

model = Net()
checkpoint = torch.load("sd_cuda.pth", map_location=lambda storage, loc: storage)
model.load_state_dict(checkpoint)
