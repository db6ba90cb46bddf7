import torch
from torch import nn
from model import Net

net = nn.DataParallel(Net()).cuda()
checkpoint = torch.load("ckpt_dp_cuda.pth.tar", weights_only=False)
net.load_state_dict(checkpoint["state_dict"])
net.eval()
print(net(torch.randn(3, 4)))
