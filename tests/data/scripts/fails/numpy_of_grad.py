import torch
from model import Net

net = Net()
net.load_state_dict(torch.load("sd_cpu.pth"))
net.eval()
out = net(torch.randn(3, 4))
print(out.numpy())
