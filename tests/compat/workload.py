"""The program behind `v1-torch.leadline`: two training steps in the trace window, a fork, a child that is killed,
regions."""

import os
import signal
import time

import torch

import leadline


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with leadline.region("activation"):
            return torch.relu(self.inner(x))


def train(model: torch.nn.Module, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def in_child(killed: bool) -> None:
    pid = os.fork()
    if pid == 0:
        torch.zeros(16).add_(1)
        if killed:
            time.sleep(1.0)  # several flush intervals of 0.1 s, so that a segment is there
            os.kill(os.getpid(), signal.SIGKILL)
        leadline.stop()
        os._exit(0)
    os.waitpid(pid, 0)


def main() -> None:
    torch.set_num_threads(1)
    model = torch.nn.Sequential(Block(), torch.nn.Linear(8, 2))
    train(model, 4)
    in_child(killed=False)
    in_child(killed=True)


if __name__ == "__main__":
    with leadline.profile("out.leadline", trace="steps=2,wait=1", flush_interval_s=0.1, quiet=True):
        main()
