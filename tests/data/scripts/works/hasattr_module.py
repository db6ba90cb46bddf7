import torch
from model import Net

model = Net().cuda()
target = model.module if hasattr(model, "module") else model
target.load_state_dict(torch.load("sd_cuda.pth"))
