import torch
from model import Net

torch.set_default_device("cuda")
model = Net()
model.load_state_dict(torch.load("sd_cuda.pth"))
print(model(torch.randn(2, 4)))
