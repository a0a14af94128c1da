"""Training that writes a checkpoint at its end."""

import tempfile
from pathlib import Path

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

with tempfile.TemporaryDirectory() as folder:
    for _ in range(60):
        loss = net(torch.randn(32, 256)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"net": net.state_dict()}, Path(folder) / "last.pt")
