import torch
from collections import OrderedDict
from model import Net

checkpoint = torch.load("ckpt_dp_cuda.pth.tar", map_location="cpu", weights_only=False)
new_state_dict = OrderedDict()
for k, v in checkpoint["state_dict"].items():
    name = k[7:]  # remove `module.`
    new_state_dict[name] = v
net = Net()
net.load_state_dict(new_state_dict)
