import numpy as np
import torch
from model import Net

device = "cuda"
net = Net().to(device)
net.load_state_dict(torch.load("sd_cuda.pth"))
net.eval()
out = net(torch.randn(3, 4).to(device))
probs = torch.softmax(out, dim=1).detach().cpu().numpy()
best = np.argmax(probs, axis=1)
top = out.max(1)[1].cpu().numpy()
print(best, top, out[0, 0].item(), out.tolist())
