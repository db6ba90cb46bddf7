import sys
import torch

path = sys.argv[1] if len(sys.argv) > 1 else "train_cuda.pth"
ckpt = torch.load(path, map_location="cpu", weights_only=True)
for key in ckpt:
    print(key, type(ckpt[key]))
total = sum(v.numel() for v in ckpt["model"].values())
print(f"{total / 1e6:.1f}M")
