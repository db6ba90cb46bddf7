import torch
from model import Net

model = Net().cuda()
model.load_state_dict(torch.load("sd_cuda.pth"))
model.half().eval()
with torch.no_grad():
    y = model(torch.randn(2, 4, device="cuda"))
