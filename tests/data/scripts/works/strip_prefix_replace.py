import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 2)

ckp_state_dict = torch.load("ckpt_dp_cuda.pth.tar", map_location=torch.device("cpu"), weights_only=False)["state_dict"]
ckp_state = {}
for k, v in ckp_state_dict.items():
    k = k.replace("module.", "")
    ckp_state[k] = v
model = Net()
model.load_state_dict(ckp_state, strict=True)
