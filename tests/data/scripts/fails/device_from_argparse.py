import argparse
import torch
from model import Net

def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--weights", default="sd_cpu.pth")
    p.add_argument("--device", type=str, default="cuda:0", help="cuda device")
    return p.parse_args()

def run(args):
    model = Net()
    model.load_state_dict(torch.load(args.weights, map_location=args.device))
    model.to(args.device)
    return model

if __name__ == "__main__":
    run(parse())
