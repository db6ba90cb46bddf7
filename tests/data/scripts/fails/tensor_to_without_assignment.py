import torch
from model import Net

device = torch.device("cuda")
model = Net()
model.load_state_dict(torch.load("sd_cuda.pth"))
model.to(device)
x = torch.randn(2, 4)
x.to(device)
print(model(x))
