import torch
import numpy as np
from model import Net

device = torch.device("cuda")
net = Net().to(device)
net.load_state_dict(torch.load("sd_cuda.pth"))
net.eval()
with torch.no_grad():
    pred = net(torch.randn(3, 4).to(device))
    labels = pred.argmax(dim=1)
    result = labels.numpy()
print(result)
