import torch
from model import Net

device = torch.device("cuda")
model = Net()
optimizer = torch.optim.Adam(model.parameters())
checkpoint = torch.load("train_cuda.pth", map_location="cpu")
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
model.to(device)
for state in optimizer.state.values():
    for k, v in state.items():
        if isinstance(v, torch.Tensor):
            state[k] = v.to(device)
loss = model(torch.randn(3, 4).to(device)).sum()
loss.backward()
optimizer.step()
