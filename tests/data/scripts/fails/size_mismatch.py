import torch
import torch.nn as nn

NUM_CLASSES = 10

class Net(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, num_classes)

model = Net(NUM_CLASSES)
model.load_state_dict(torch.load("sd_cpu.pth"), strict=False)
