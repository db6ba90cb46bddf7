import torch
from model import Net

net = Net()
net.load_state_dict(torch.load("sd_cpu.pth"))

@torch.no_grad()
def predict(net, x):
    net.eval()
    return net(x).numpy()

print(predict(net, torch.randn(3, 4)))
