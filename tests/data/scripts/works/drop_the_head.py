import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, num_classes)

model = Net()
checkpoint_model = torch.load("sd_cpu.pth", map_location="cpu")
state_dict = model.state_dict()
for k in ["fc2.weight", "fc2.bias"]:
    if k in checkpoint_model and checkpoint_model[k].shape != state_dict[k].shape:
        print(f"Removing key {k} from pretrained checkpoint")
        del checkpoint_model[k]
model.load_state_dict(checkpoint_model, strict=False)
