import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 2)

model = Net().cuda()
ckpt = torch.load("train_cuda.pth")
model.load_state_dict(ckpt["model"])
for p in model.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(model.fc2.parameters(), lr=1e-3)
optimizer.load_state_dict(ckpt["optimizer"])
