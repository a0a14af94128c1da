# fmt: off
import glob
import os
import tempfile
import torch
import torch.nn as nn

FOLDER = tempfile.mkdtemp()
for i in range(8000):
    open(os.path.join(FOLDER, f"event-{i}.log"), "w").close()


def asked_to_stop():
    newest = [os.path.getmtime(p) for p in glob.glob(os.path.join(FOLDER, "*.stop")) + glob.glob(os.path.join(FOLDER, "event-1*.log"))]
    return max(newest) > 1e12


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(100, 300), nn.Tanh(), nn.Linear(300, 10))
    opt = torch.optim.Adam(net.parameters())
    for step in range(100):
        x, y = torch.randn(64, 100), torch.randint(0, 10, (64,))
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if asked_to_stop():
            break


if __name__ == "__main__":
    main()
# ruff: noqa
