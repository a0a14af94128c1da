"""The target of Q-learning is computed without a graph."""

import copy

import torch
from torch import nn

torch.set_num_threads(1)


def main():
    model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4))
    target = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for step in range(60):
        state, following = torch.randn(512, 16), torch.randn(512, 16)
        action, reward = torch.randint(0, 4, (512, 1)), torch.randn(512)
        with torch.no_grad():
            best = target(following).max(1).values
        wanted = reward + 0.99 * best
        loss = nn.functional.smooth_l1_loss(model(state).gather(1, action).squeeze(1), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            target.load_state_dict(model.state_dict())


main()
