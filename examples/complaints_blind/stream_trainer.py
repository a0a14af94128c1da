# fmt: off
import threading
import time
from collections import deque
import numpy as np
import torch
import torch.nn as nn


class ClickStream(threading.Thread):
    """Feeds mini-batches from the click log."""

    def __init__(self, n_batches, batch=128, depth=1):
        super().__init__(daemon=True)
        self.n_batches, self.batch, self.depth = n_batches, batch, depth
        self.ready = deque()
        self.rng = np.random.default_rng(0)

    def build(self):
        x = self.rng.standard_normal((self.batch, 200), dtype=np.float32)
        y = (x[:, :3].sum(1) > 0).astype(np.float32)
        return torch.from_numpy(x), torch.from_numpy(y)

    def run(self):
        for _ in range(self.n_batches):
            item = self.build()
            while len(self.ready) >= self.depth:
                time.sleep(0.1)
            self.ready.append(item)

    def get(self):
        while not self.ready:
            time.sleep(0.1)
        return self.ready.popleft()


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.deep = nn.Sequential(nn.Linear(200, 256), nn.ReLU(), nn.Dropout(0.1),
                                  nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))
        self.wide = nn.Linear(200, 1)

    def forward(self, x):
        return (self.deep(x) + self.wide(x)).squeeze(-1)


def main():
    torch.manual_seed(0)
    n = 90
    stream = ClickStream(n)
    stream.start()
    model = ClickModel()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
    t0 = time.perf_counter()
    for step in range(1, n + 1):
        x, y = stream.get()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"batch {step} logloss {loss.item():.4f} {step / (time.perf_counter() - t0):.1f} batches/s")
    stream.join()


if __name__ == "__main__":
    main()
# ruff: noqa
