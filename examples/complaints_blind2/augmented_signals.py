# fmt: off
import multiprocessing
import numpy as np
import torch
import torch.nn as nn


def jitter(args):
    seed, x = args
    return x + np.random.default_rng(seed).normal(size=x.shape).astype(np.float32) * 0.1


def augment(batch, step):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return np.stack(pool.map(jitter, [(step * 100 + i, x) for i, x in enumerate(batch)]))


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    net = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 6))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(40):
        batch = augment(rng.normal(size=(16, 256)).astype(np.float32), step)
        loss = nn.functional.cross_entropy(net(torch.from_numpy(batch)), torch.randint(0, 6, (16,)))
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
