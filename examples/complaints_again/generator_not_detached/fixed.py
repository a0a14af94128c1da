"""What the generator made is detached before the discriminator learns from it."""

import itertools

import torch
from torch import nn

torch.set_num_threads(1)


def layers(*widths):
    made = []
    for before, after in itertools.pairwise(widths):
        made += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
    return nn.Sequential(*made[:-1])


def main():
    generator, discriminator = layers(64, 512, 512, 784), layers(784, 256, 1)
    of_generator = torch.optim.Adam(generator.parameters(), 2e-4, foreach=True)
    of_discriminator = torch.optim.Adam(discriminator.parameters(), 2e-4, foreach=True)
    score = nn.functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
    for _ in range(25):
        with torch.no_grad():
            fake = generator(torch.randn(64, 64))
        loss = score(discriminator(torch.randn(64, 784)), ones) + score(discriminator(fake), zeros)
        of_discriminator.zero_grad()
        loss.backward()
        of_discriminator.step()

        of_generator.zero_grad()
        fake = generator(torch.randn(64, 64))
        discriminator.requires_grad_(False)
        score(discriminator(fake), ones).backward()
        discriminator.requires_grad_(True)
        of_generator.step()


main()
