import torch
from model import Net

model = Net()
model.load_state_dict(torch.load("sd_cuda.pth", map_location=lambda storage, loc: storage))
model.cuda()
model.eval()
