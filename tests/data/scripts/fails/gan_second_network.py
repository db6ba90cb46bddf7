import torch
import torch.nn as nn

generator = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
ckpt = torch.load("gan_cuda.pth")
generator.load_state_dict(ckpt["netG"])
discriminator.load_state_dict(ckpt["netD"])
cuda = torch.cuda.is_available()
if cuda:
    generator.cuda()
z = torch.randn(5, 3)
if cuda:
    z = z.cuda()
fake = generator(z)
validity = discriminator(fake)
