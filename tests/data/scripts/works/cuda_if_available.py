import torch
from model import Net

use_cuda = torch.cuda.is_available()
model = Net()
if use_cuda:
    model.load_state_dict(torch.load("sd_cuda.pth"))
    model = model.cuda()
else:
    model.load_state_dict(torch.load("sd_cuda.pth", map_location="cpu"))
x = torch.randn(2, 4)
x = x.cuda() if use_cuda else x
print(model(x))
