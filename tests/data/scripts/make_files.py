"""Writes the checkpoints of `files/` again: `python -P tests/data/scripts/make_files.py` in the repository."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import torch
from torch import nn

from tests.torch.remapping import tagged

FILES = Path(__file__).parent / "files"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.bn(self.fc1(x))))


def trained(kind, **how):
    net = Net()
    optimizer = kind(net.parameters(), lr=0.01, **how)
    net(torch.randn(4, 4)).sum().backward()
    optimizer.step()
    return net, optimizer.state_dict()


def save(name, value, device):
    with tagged(lambda storage: "cpu" if storage.nbytes() == 4 and name.startswith("train") else device):
        torch.save(value, FILES / name)


def main():
    torch.manual_seed(0)
    net, adam = trained(torch.optim.Adam)
    other, sgd = trained(torch.optim.SGD, momentum=0.9)
    state = net.state_dict()
    save("sd_cuda.pth", state, "cuda:0")
    save("sd_cuda1.pth", state, "cuda:1")
    save("sd_cpu.pth", state, "cpu")
    save("compiled_cpu.pth", {f"_orig_mod.{key}": value for key, value in state.items()}, "cpu")
    save("train_cuda.pth", {"epoch": 3, "model": state, "optimizer": adam}, "cuda:0")
    plain = {"epoch": 3, "model_state_dict": state, "optimizer_state_dict": adam, "loss": 0.25}
    save("train_cpu.pth", plain, "cpu")
    parallel = nn.DataParallel(other).state_dict()
    imagenet = {"epoch": 5, "arch": "net", "state_dict": parallel, "best_acc1": torch.tensor(71.5), "optimizer": sgd}
    save("ckpt_dp_cuda.pth.tar", imagenet, "cuda:0")
    save("args_cuda.pth", {"args": argparse.Namespace(lr=0.1), "model": state}, "cuda:0")
    save("whole_cpu.pth", net, "cpu")
    save("features_cuda.pth", {"features": torch.randn(6, 4), "labels": torch.arange(6)}, "cuda:0")
    lightning = {
        "epoch": 1, "global_step": 20, "pytorch-lightning_version": "2.4.0",
        "state_dict": {f"model.{key}": value for key, value in state.items()},
        "hyper_parameters": {"lr": 0.1},
    }
    save("last.ckpt", lightning, "cpu")
    generator = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    judge = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    save("gan_cuda.pth", {"netG": generator.state_dict(), "netD": judge.state_dict()}, "cuda:0")


if __name__ == "__main__":
    main()
