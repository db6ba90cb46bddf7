import logging
import torch
from model import Net, make_optimizer, save_everything

log = logging.getLogger(__name__)
device = torch.device("cpu")
net = Net()
opt = make_optimizer(net)
ckpt = torch.load("train_cuda.pth", map_location=device)
net.load_state_dict(ckpt["model"])
log.info("epoch %d", ckpt["epoch"])
save_everything(net, opt)
for name, value in ckpt["model"].items():
    print(name, tuple(value.shape), value.device)
