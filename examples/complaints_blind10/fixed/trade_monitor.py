"""Train a model of trades; a second thread writes the metrics to a file, so that training need not wait for the disk."""
import json
import os
import queue
import tempfile
import threading
import time

import torch
import torch.nn as nn

STEPS, BATCH, FEATURES = 900, 64, 64


class MetricWriter(threading.Thread):
    """Takes metrics out of a queue and appends them to a file, one JSON object a line."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.inbox = queue.Queue()
        self.running = True
        self.written = 0

    def log(self, **values):
        self.inbox.put(values)

    def run(self):
        with open(self.path, "w") as out:
            while True:
                values = self.inbox.get()
                if values is None:
                    break
                out.write(json.dumps(values) + "\n")
                self.written += 1

    def stop(self):
        self.inbox.put(None)
        self.join()


class TradeNet(nn.Module):
    def __init__(self, width=128, depth=10):
        super().__init__()
        self.stem = nn.Linear(FEATURES, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def main():
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(), "metrics.jsonl")
    writer = MetricWriter(path)
    writer.start()
    model = TradeNet()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.randn(8192, FEATURES)
    target = (data[:, :3] * 2).argmax(1)
    start = time.perf_counter()
    for step in range(STEPS):
        idx = torch.randint(0, len(data), (BATCH,))
        loss = nn.functional.cross_entropy(model(data[idx]), target[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 10 == 0:
            writer.log(step=step, loss=loss.item(), seconds=time.perf_counter() - start)
        if (step + 1) % 150 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}")
    spent = time.perf_counter() - start
    writer.stop()
    print(f"{spent / STEPS * 1e3:.2f} ms a step, {writer.written} rows written")


if __name__ == "__main__":
    main()
