import torch
from model import Net

sd = torch.load("sd_cpu.pth", map_location=lambda storage, loc: storage.cuda(0))
model = Net()
model.load_state_dict(sd)
model.cuda()
model(sd["fc1.weight"])
