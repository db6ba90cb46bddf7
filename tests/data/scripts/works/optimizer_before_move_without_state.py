import torch
from model import Net

device = torch.device("cuda:0")
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.load_state_dict(torch.load("sd_cuda.pth"))
model.to(device)
loss = model(torch.randn(3, 4, device=device)).mean()
loss.backward()
optimizer.step()
