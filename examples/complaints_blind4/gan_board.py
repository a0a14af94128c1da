"""DCGAN on 32x32 sprites with TensorBoard."""
import logging
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(0)
Z, NGF, NDF, BATCH = 64, 24, 24, 32


def generator():
    return nn.Sequential(
        nn.ConvTranspose2d(Z, NGF * 4, 4, 1, 0, bias=False), nn.BatchNorm2d(NGF * 4), nn.ReLU(True),
        nn.ConvTranspose2d(NGF * 4, NGF * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(NGF * 2), nn.ReLU(True),
        nn.ConvTranspose2d(NGF * 2, NGF, 4, 2, 1, bias=False), nn.BatchNorm2d(NGF), nn.ReLU(True),
        nn.ConvTranspose2d(NGF, 3, 4, 2, 1), nn.Tanh())


def discriminator():
    return nn.Sequential(
        nn.Conv2d(3, NDF, 4, 2, 1), nn.LeakyReLU(0.2, True),
        nn.Conv2d(NDF, NDF * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(NDF * 2), nn.LeakyReLU(0.2, True),
        nn.Conv2d(NDF * 2, NDF * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(NDF * 4), nn.LeakyReLU(0.2, True),
        nn.Conv2d(NDF * 4, 1, 4, 1, 0), nn.Flatten(0))


def log_network(writer, tag, net, step):
    for name, p in net.named_parameters():
        writer.add_histogram(f"{tag}/{name}", p, step)
        if p.grad is not None:
            writer.add_histogram(f"{tag}/{name}.grad", p.grad, step)


def main(folder):
    sprites = torch.rand(2048, 3, 32, 32) * 2 - 1
    netG, netD = generator(), discriminator()
    optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
    writer = SummaryWriter(folder)
    start, steps = time.time(), 100
    for step in range(1, steps + 1):
        real = sprites[torch.randint(0, len(sprites), (BATCH,))]
        fake = netG(torch.randn(BATCH, Z, 1, 1))
        lossD = F.softplus(-netD(real)).mean() + F.softplus(netD(fake.detach())).mean()
        optD.zero_grad()
        lossD.backward()
        optD.step()
        lossG = F.softplus(-netD(fake)).mean()
        optG.zero_grad()
        lossG.backward()
        optG.step()
        writer.add_scalar("loss/D", lossD.item(), step)
        writer.add_scalar("loss/G", lossG.item(), step)
        log_network(writer, "G", netG, step)
        log_network(writer, "D", netD, step)
        if step % 25 == 0:
            print(f"step {step} D {lossD.item():.3f} G {lossG.item():.3f} {(time.time() - start) / step * 1e3:.1f} ms/step")
    writer.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
