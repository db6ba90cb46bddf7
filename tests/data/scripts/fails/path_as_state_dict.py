import torch
import os
from model import Net

root = "."
net = Net()
net.load_state_dict(os.path.join(root, "sd_cpu.pth"))
