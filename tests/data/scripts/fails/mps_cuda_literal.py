import torch
from model import Net

if torch.backends.mps.is_available():
    device = torch.device("mps")
else:
    device = torch.device("cpu")
model = Net().to(device)
weights = torch.load("sd_cuda.pth")
model.load_state_dict(weights)
