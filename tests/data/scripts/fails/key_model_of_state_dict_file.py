import torch
from model import Net

net = torch.nn.DataParallel(Net()).cuda()
net.load_state_dict(torch.load("ckpt_dp_cuda.pth.tar", weights_only=False)['model'])
net.eval()
