import torch
from model import Net

model = Net()
model.load_state_dict(torch.load("sd_cuda.pth", map_location="cpu"))
model.eval()
print(model(torch.randn(2, 4)))
