# fmt: off
import threading
import time
import torch
import torch.nn as nn


class Dashboard:
    """Keeps smoothed numbers ready for the status line."""

    def __init__(self):
        self.losses, self.stop = [], threading.Event()
        self.summary = {"median": 0.0, "ema": 0.0}
        self.worker = threading.Thread(target=self.refresh, daemon=True)

    def refresh(self):
        while not self.stop.is_set():
            values = list(self.losses)
            ema = 0.0
            for v in values:
                ema = 0.98 * ema + 0.02 * v
            ordered = sorted(values)
            if ordered:
                self.summary = {"median": ordered[len(ordered) // 2], "ema": ema}

    def __enter__(self):
        self.worker.start()
        return self

    def __exit__(self, *exc):
        self.stop.set()
        self.worker.join()


class KeypointHead(nn.Module):
    def __init__(self, n_feat=256, n_points=17):
        super().__init__()
        self.fc1 = nn.Linear(n_feat, 512)
        self.fc2 = nn.Linear(512, 2 * n_points)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def main():
    torch.manual_seed(0)
    feats = torch.randn(4000, 256)
    points = feats[:, :34].tanh()
    model = KeypointHead()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    with Dashboard() as board:
        t0 = time.perf_counter()
        for step in range(1, 121):
            rows = torch.randint(0, 4000, (256,))
            loss = nn.functional.mse_loss(model(feats[rows]), points[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            board.losses.append(loss.item())
            if step % 20 == 0:
                print(f"step {step} ema {board.summary['ema']:.4f} "
                      f"{(time.perf_counter() - t0) / step * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
