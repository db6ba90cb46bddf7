import torch
from model import Net

checkpoint = torch.load("ckpt_dp_cuda.pth.tar", map_location="cpu", weights_only=False)
state_dict = checkpoint["state_dict"]
for k in list(state_dict.keys()):
    if k.startswith("module."):
        state_dict[k[len("module."):]] = state_dict[k]
    del state_dict[k]
model = Net()
msg = model.load_state_dict(state_dict, strict=False)
assert not msg.missing_keys
