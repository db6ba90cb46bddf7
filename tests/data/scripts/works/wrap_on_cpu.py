import torch
from model import Net

net = torch.nn.DataParallel(Net())
ckpt = torch.load("ckpt_dp_cuda.pth.tar", map_location="cpu", weights_only=False)
net.load_state_dict(ckpt["state_dict"])
net = net.module
print(net(torch.randn(3, 4)).shape)
