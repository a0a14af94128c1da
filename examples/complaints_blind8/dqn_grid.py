"""DQN on a toy grid world with a long replay memory."""
import argparse
import random
import time
from collections import deque, namedtuple

import numpy as np
import torch
from torch import nn

Transition = namedtuple("Transition", "state action reward next_state done")
STATE, ACTIONS = 12, 4


class Grid:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.state = self.rng.random(STATE).astype(np.float32)
        self.moves = self.rng.normal(0, 0.1, (ACTIONS, STATE)).astype(np.float32)

    def step(self, action):
        before = self.state
        after = before + self.moves[action]
        done = bool(np.abs(after).max() > 3)
        if done:
            after = np.zeros(STATE, np.float32)
        self.state = after
        return Transition(before, action, float(-np.abs(after).mean()), after, done)


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, transition):
        self.memory.append(transition)

    def sample(self, size):
        return random.sample(self.memory, size)

    def __len__(self):
        return len(self.memory)


class QNet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(STATE, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, ACTIONS)
        )

    def forward(self, x):
        return self.layers(x)


def tensors(samples):
    batch = Transition(*zip(*samples))
    return (
        torch.from_numpy(np.stack(batch.state)),
        torch.tensor(batch.action),
        torch.tensor(batch.reward),
        torch.from_numpy(np.stack(batch.next_state)),
        torch.tensor(batch.done, dtype=torch.float32),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--memory", type=int, default=400_000)
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()

    random.seed(0)
    torch.manual_seed(0)
    env, memory = Grid(), ReplayMemory(args.memory)
    for _ in range(args.memory):  # the behaviour policy's recordings
        memory.push(env.step(random.randrange(ACTIONS)))
    online, target = QNet(), QNet()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-4)
    started = time.perf_counter()
    for step in range(args.steps):
        with torch.no_grad():
            greedy = online(torch.from_numpy(env.state)).argmax().item()
        memory.push(env.step(greedy if random.random() > 0.1 else random.randrange(ACTIONS)))
        states, actions, rewards, next_states, done = tensors(memory.sample(args.batch_size))
        with torch.no_grad():
            wanted = rewards + 0.98 * (1 - done) * target(next_states).max(dim=1).values
        value = online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, wanted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"{(time.perf_counter() - started) / args.steps * 1000:.2f} ms a step")


if __name__ == "__main__":
    main()
