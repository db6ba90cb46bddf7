import torch
from torch import nn, optim
from model import Net

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = Net()
optimizer = optim.Adam(model.parameters(), lr=1e-3)

checkpoint = torch.load("train_cuda.pth", map_location="cpu")
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
model.to(device)

criterion = nn.CrossEntropyLoss()
for epoch in range(checkpoint["epoch"], 10):
    x, y = torch.randn(8, 4).to(device), torch.randint(0, 2, (8,)).to(device)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
