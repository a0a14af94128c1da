"""Self-play worker sends games to the trainer, AlphaZero style."""
import multiprocessing as mp
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

BOARD, PLANES, BATCH, STEPS = 13, 17, 64, 120


def play_games(queue, seed, batches):
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        examples = []
        planes = rng.integers(0, 2, (BATCH, PLANES, BOARD, BOARD)).astype(np.float32)
        policies = rng.dirichlet(np.ones(BOARD * BOARD), BATCH)
        outcomes = rng.choice([-1.0, 1.0], BATCH)
        for state, policy, outcome in zip(planes, policies, outcomes):
            examples.append((state.tolist(), policy.tolist(), float(outcome)))
        queue.put(examples)


class PolicyValueNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(PLANES, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.policy = nn.Sequential(nn.Conv2d(width, 1, 1), nn.Flatten())
        self.value = nn.Sequential(nn.Flatten(), nn.Linear(width * BOARD * BOARD, 1), nn.Tanh())

    def forward(self, x):
        h = self.trunk(x)
        return self.policy(h), self.value(h).squeeze(1)


def train_on(model, optimizer, examples):
    states, policies, outcomes = zip(*examples)
    states = torch.as_tensor(np.array(states, dtype=np.float32))
    policies = torch.as_tensor(np.array(policies, dtype=np.float32))
    outcomes = torch.as_tensor(np.array(outcomes, dtype=np.float32))
    logits, value = model(states)
    loss = F.cross_entropy(logits, policies) + F.mse_loss(value, outcomes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    queue = mp.Queue(maxsize=4)
    worker = mp.Process(target=play_games, args=(queue, 0, STEPS), daemon=True)
    worker.start()
    model = PolicyValueNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    begin = time.perf_counter()
    for step in range(STEPS):
        loss = train_on(model, optimizer, queue.get())
        if step % 10 == 0:
            print(f"step {step} loss {loss:.4f}")
    print(f"{(time.perf_counter() - begin) / STEPS * 1e3:.1f} ms/step")
    worker.join()


if __name__ == "__main__":
    main()
