import torch
from model import Net

device = (
    "cuda"
    if torch.cuda.is_available()
    else "mps"
    if torch.backends.mps.is_available()
    else "cpu"
)
print(f"Using {device} device")
model = Net().to(device)
model.load_state_dict(torch.load("sd_cuda.pth", map_location=torch.device(device)))
x = torch.randn(2, 4).to(device)
pred = model(x)
predicted = pred[0].argmax(0)
