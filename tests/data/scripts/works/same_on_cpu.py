import torch
from torch import nn, optim
from model import Net

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net()
optimizer = optim.Adam(model.parameters(), lr=0.001)
checkpoint = torch.load("train_cuda.pth", map_location=device)
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
model.to(device)  # after the optimizer, which does no harm on the CPU
loss = nn.CrossEntropyLoss()(model(torch.randn(3, 4)), torch.tensor([0, 1, 1]))
loss.backward()
optimizer.step()
