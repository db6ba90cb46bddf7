import argparse
import torch
from model import Net

torch.serialization.add_safe_globals([argparse.Namespace])
checkpoint = torch.load("args_cuda.pth", map_location="cpu")
args = checkpoint["args"]
model = Net()
model.load_state_dict(checkpoint["model"])
print(args.lr)
