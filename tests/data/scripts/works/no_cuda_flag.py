import argparse
import torch
from model import Net

parser = argparse.ArgumentParser()
parser.add_argument("--no-cuda", action="store_true", default=False)
parser.add_argument("--weights", type=str, default="sd_cuda.pth")
args = parser.parse_args()
use_cuda = not args.no_cuda and torch.cuda.is_available()
device = torch.device("cuda" if use_cuda else "cpu")
kwargs = {"map_location": device}
if torch.__version__ >= "2.0":
    kwargs["weights_only"] = True
model = Net()
model.load_state_dict(torch.load(args.weights, **kwargs))
model.to(device)
