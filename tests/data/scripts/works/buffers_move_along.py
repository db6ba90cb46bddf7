import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 2)
        self.register_buffer("shift", torch.zeros(8), persistent=False)

    def forward(self, x):
        batch = x.size(0)
        noise = torch.zeros(batch, 8, device=x.device)
        h = self.bn(self.fc1(x)) + self.shift + noise
        mask = torch.ones_like(h)
        return self.fc2(h * mask * 2.0)

model = Net()
model.load_state_dict(torch.load("sd_cuda.pth"))
model.cuda().eval()
print(model(torch.randn(1, 4).cuda()))
