import torch
from model import Net

ckpt = torch.load("last.ckpt", map_location="cpu")
state = {k.replace("model.", "", 1): v for k, v in ckpt["state_dict"].items() if k.startswith("model.")}
net = Net()
net.load_state_dict(state)
print(ckpt["epoch"], ckpt["hyper_parameters"])
