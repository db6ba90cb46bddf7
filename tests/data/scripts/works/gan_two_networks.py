import torch
import torch.nn as nn

netG = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
netD = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
ckpt = torch.load("gan_cuda.pth")
for net, key in [(netG, "netG"), (netD, "netD")]:
    net.load_state_dict(ckpt[key])
    net.cuda()
optim_d = torch.optim.Adam(netD.parameters())
noise = torch.randn(5, 3, device="cuda")
fake = netG(noise)
real_label = torch.full((5, 1), 1.0, device=noise.device)
loss = nn.BCELoss()(netD(fake.detach()), real_label)
loss.backward()
optim_d.step()
