import torch
from torch.optim.lr_scheduler import StepLR
from model import Net

def load_checkpoint(filename, model, optimizer, scheduler):
    ckpt = torch.load(filename)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    scheduler.load_state_dict(ckpt["scheduler"])
    return ckpt["epoch"]

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
scheduler = StepLR(optimizer, 30)
start = load_checkpoint("train_cuda.pth", model, optimizer, scheduler)
