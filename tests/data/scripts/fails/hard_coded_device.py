import torch
from model import Net

device = torch.device("cuda:0")


def build():
    net = Net()
    return net.to(device)


net = build()
net.load_state_dict(torch.load("sd_cpu.pth"))
