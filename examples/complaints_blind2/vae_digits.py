# fmt: off
import torch
import torch.nn as nn


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 40))
        self.dec = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784))

    def forward(self, x):
        mean, logvar = self.enc(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.dec(z), mean, logvar


def main():
    torch.manual_seed(0)
    data = torch.rand(2000, 784)
    net = Vae()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(150):
        x = data[torch.randint(0, 2000, (256,))]
        out, mean, logvar = net(x)
        loss = nn.functional.binary_cross_entropy_with_logits(out, x, reduction="sum") / 256
        loss = loss - 0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
