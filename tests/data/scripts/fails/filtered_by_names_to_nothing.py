import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)

model = Net()
saved = torch.load("compiled_cpu.pth")
own = model.state_dict()
matching = {k: v for k, v in saved.items() if k in own}
own.update(matching); model.load_state_dict(own)
model.eval()
