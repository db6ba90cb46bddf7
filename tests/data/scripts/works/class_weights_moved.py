import torch
from torch import nn
from model import Net

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
model.load_state_dict(torch.load("sd_cuda.pth"))
criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 0.8]).to(device))
other = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 0.8]))
other.to(device)
x, y = torch.randn(5, 4).to(device), torch.zeros(5, dtype=torch.long).to(device)
loss = criterion(model(x), y) + 0.5 * other(model(x), y)
loss = loss + torch.tensor(0.1)  # a number may stay on the CPU
loss.backward()
