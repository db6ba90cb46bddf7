from pathlib import Path

import torch
import torch.nn.functional as F
from model import Net


class Trainer:
    def __init__(self, path: Path, device: str = "cuda") -> None:
        self.device = device
        self.model = Net().to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.start = 0
        self.resume(path)

    def resume(self, path):
        state = torch.load(path, map_location="cpu")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.start = state["epoch"] + 1

    def step(self, batch):
        x, y = [t.to(self.device) for t in batch]
        loss = F.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


trainer = Trainer(Path(".") / "train_cuda.pth")
print(trainer.step((torch.randn(4, 4), torch.zeros(4, dtype=torch.long))))
