import torch
from model import Net

PATH = "sd_cuda.pth"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

model = Net().to(device)
state = torch.load(PATH)  # saved on our server
model.load_state_dict(state)
model.eval()

with torch.no_grad():
    out = model(torch.randn(2, 4, device=device))
print(out)
