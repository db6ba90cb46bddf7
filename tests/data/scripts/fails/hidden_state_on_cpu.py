import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 2)

    def forward(self, x):
        noise = torch.zeros(x.size(0), 8)
        h = self.bn(self.fc1(x))
        h = h + noise
        return self.fc2(h)

model = Net()
model.load_state_dict(torch.load("sd_cuda.pth"))
model.cuda().eval()
print(model(torch.randn(1, 4).cuda()))
