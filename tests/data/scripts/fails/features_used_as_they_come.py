import torch

data = torch.load("features_cuda.pth")
features, labels = data["features"], data["labels"]
print(features.shape)
