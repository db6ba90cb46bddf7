import torch

data = torch.load("features_cuda.pth", map_location="cpu")
features, labels = data["features"], data["labels"]
norm = features / features.norm(dim=-1, keepdim=True)
print(norm.numpy().mean(), labels[:3].tolist())
