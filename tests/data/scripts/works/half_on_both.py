import torch
from model import Net

model = Net().cuda().half().eval()
model.load_state_dict(torch.load("sd_cuda.pth"))
with torch.inference_mode():
    y = model(torch.randn(2, 4).to("cuda", torch.float16))
    z = model(torch.randn(2, 4).cuda().half())
