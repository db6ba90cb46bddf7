import torch
from model import Net

model = Net()
state_dict = torch.load("compiled_cpu.pth", map_location="cpu")
unwanted_prefix = "_orig_mod."
for k, v in list(state_dict.items()):
    if k.startswith(unwanted_prefix):
        state_dict[k[len(unwanted_prefix):]] = state_dict.pop(k)
model.load_state_dict(state_dict)
