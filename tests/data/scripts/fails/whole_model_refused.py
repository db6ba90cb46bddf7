import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)

    def forward(self, x):
        return self.fc1(x)

model = torch.load("whole_cpu.pth")
model.eval()
