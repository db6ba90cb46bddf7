import torch
from model import Net

model = Net()
state = torch.load("ckpt_dp_cuda.pth.tar", map_location="cpu", weights_only=False)["state_dict"]
torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
model.load_state_dict(state)
