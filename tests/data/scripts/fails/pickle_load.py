import pickle
import torch
from model import Net

with open("sd_cpu.pth", "rb") as f:
    state = pickle.load(f)
model = Net()
model.load_state_dict(state)
