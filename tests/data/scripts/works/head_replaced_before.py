import torch
import torch.nn as nn
from model import Net

model_ft = Net()
num_ftrs = model_ft.fc2.in_features
model_ft.fc2 = nn.Linear(num_ftrs, 2)
model_ft.load_state_dict(torch.load("sd_cpu.pth"))
for param in model_ft.parameters():
    param.requires_grad = False
model_ft.fc2 = nn.Linear(num_ftrs, 7)
optimizer = torch.optim.SGD(model_ft.fc2.parameters(), lr=0.001, momentum=0.9)
loss = nn.functional.cross_entropy(model_ft(torch.randn(3, 4)), torch.tensor([0, 6, 2]))
loss.backward()
optimizer.step()
