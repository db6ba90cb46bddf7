import torch

model = torch.load("whole_cpu.pth", map_location="cpu", weights_only=False)
model.eval()
