import torch
import torch.nn as nn
from model import Net

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model = Net()
model.load_state_dict(torch.load("sd_cpu.pth"))
before = {k: v.clone() for k, v in model.state_dict().items()}
loss = nn.functional.cross_entropy(model(torch.randn(4, 4)), torch.tensor([0, 1, 0, 1]))
optimizer.zero_grad()
loss.backward()
optimizer.step()
