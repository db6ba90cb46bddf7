import torch
from model import Net

def load(path):
    model = Net()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    return model

model = load("train_cpu.pth")
model.eval()
