"""Forecast the load of a power grid with a temporal convolution network."""
import time

import torch
import torch.nn as nn

STEPS, BATCH, PAST, NEXT, LINES = 200, 64, 168, 24, 12


class Block(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv1 = nn.Conv1d(width, width, 3, dilation=dilation, padding=self.pad)
        self.conv2 = nn.Conv1d(width, width, 1)

    def forward(self, x):
        h = self.conv1(x)[..., :-self.pad].relu()
        return (x + self.conv2(h)).relu()


class TCN(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Conv1d(LINES, width, 1)
        self.blocks = nn.Sequential(*[Block(width, 2**i) for i in range(5)])
        self.head = nn.Linear(width, NEXT * LINES)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x))[..., -1]).view(-1, LINES, NEXT)


def make_load(hours=20000):
    g = torch.Generator().manual_seed(1)
    t = torch.arange(hours)
    phase = torch.rand(LINES, 1, generator=g) * 6.28
    day = torch.sin(t * 6.28 / 24 + phase)
    week = 0.4 * torch.sin(t * 6.28 / 168 + phase)
    return day + week + 0.1 * torch.randn(LINES, hours, generator=g)


def main():
    torch.manual_seed(0)
    windows = make_load().unfold(1, PAST + NEXT, 1).transpose(0, 1)
    train, valid = windows[:-1000], windows[-1000:]
    model = TCN()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)
    start, running = time.perf_counter(), torch.zeros(())
    for step in range(STEPS):
        batch = train[torch.randint(0, len(train), (BATCH,))]
        loss = nn.functional.smooth_l1_loss(model(batch[..., :PAST]), batch[..., PAST:])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        running += loss.detach()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} loss {running.item() / 50:.4f}")
            running.zero_()
    model.eval()
    with torch.inference_mode():
        error = nn.functional.l1_loss(model(valid[::4, :, :PAST]), valid[::4, :, PAST:])
    print(f"validation {error.item():.4f}, {(time.perf_counter() - start) / STEPS * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
