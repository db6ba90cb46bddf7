import torch
from model import Net

model = Net()
checkpoint = torch.load("last.ckpt", map_location="cpu")
print(checkpoint.keys())
model.load_state_dict(checkpoint["state_dict"])
