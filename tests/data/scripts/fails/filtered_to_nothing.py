import torch
from model import Net

model = Net()
saved = torch.load("compiled_cpu.pth")
own = model.state_dict()
matching = {k: v for k, v in saved.items() if k in own and v.shape == own[k].shape}
model.load_state_dict(matching, strict=False)
model.eval()
