import torch
from model import Net

weights = "sd_cuda.pth"
model = Net()
checkpoint = torch.load(weights)
checkpoint = checkpoint['state_dict']
model.load_state_dict(checkpoint)
