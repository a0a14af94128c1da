# fmt: off
import os
import shutil
import tempfile
import time
import torch
import torch.nn as nn


class StyleEncoder(nn.Module):
    def __init__(self, dim=640, n_style=64):
        super().__init__()
        self.inp = nn.Linear(512, dim)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
            for _ in range(3))
        self.out = nn.Linear(dim, n_style)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = x + block(x)
        return nn.functional.normalize(self.out(x), dim=-1)


class Run:
    def __init__(self, folder, keep_every=2):
        self.folder = folder
        self.keep_every = keep_every
        self.best = float("inf")

    def after_step(self, step, model, opt, loss):
        if step % self.keep_every:
            return
        state = {"step": step, "model": model.state_dict(), "optim": opt.state_dict()}
        tmp = os.path.join(self.folder, "last.pt.tmp")
        with open(tmp, "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(tmp, os.path.join(self.folder, "last.pt"))
        self.best = min(self.best, loss)


def main():
    torch.manual_seed(0)
    folder = tempfile.mkdtemp(prefix="style_")
    run = Run(folder)
    model = StyleEncoder()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    feats = torch.randn(4096, 512)
    t0 = time.perf_counter()
    for step in range(1, 61):
        anchor = feats[torch.randint(0, 4096, (48,))]
        positive = anchor + 0.1 * torch.randn_like(anchor)
        sim = model(anchor) @ model(positive).t() / 0.07
        loss = nn.functional.cross_entropy(sim, torch.arange(48))
        opt.zero_grad()
        loss.backward()
        opt.step()
        run.after_step(step, model, opt, loss.item())
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f} avg {(time.perf_counter() - t0) / step * 1e3:.0f} ms")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
# ruff: noqa
