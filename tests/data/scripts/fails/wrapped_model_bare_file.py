import torch
from torch import nn
from model import Net

model = Net()
if torch.cuda.device_count() > 1:
    print("Let's use", torch.cuda.device_count(), "GPUs!")
    model = nn.DataParallel(model)
model.to("cuda")
model.load_state_dict(torch.load("sd_cuda.pth"))
