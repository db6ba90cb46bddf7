import torch
from torch import nn
from model import Net

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
model.load_state_dict(torch.load("sd_cuda.pth", map_location=device))

class_weights = torch.tensor([0.2, 0.8])
criterion = nn.CrossEntropyLoss(weight=class_weights)
x = torch.randn(5, 4).to(device)
y = torch.zeros(5, dtype=torch.long).to(device)
logits = model(x)
loss = criterion(logits, y)
