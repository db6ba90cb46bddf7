import torch
from model import Net

def load_state_dict(path, use_ema=False):
    checkpoint = torch.load(path, map_location="cpu")
    key = ""
    if isinstance(checkpoint, dict):
        if use_ema and checkpoint.get("state_dict_ema", None) is not None:
            key = "state_dict_ema"
        elif "state_dict" in checkpoint:
            key = "state_dict"
        elif "model" in checkpoint:
            key = "model"
    state = checkpoint[key] if key else checkpoint
    return {k[7:] if k.startswith("module") else k: v for k, v in state.items()}

model = Net()
model.load_state_dict(load_state_dict("sd_cuda.pth"))
