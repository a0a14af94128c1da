"""NumPy's arrays are of double precision, and the model was made to match them."""

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(64, 512), nn.Linear(512, 512), nn.Linear(512, 8)

    def forward(self, points):
        hidden = torch.tanh(self.first(points))
        hidden = torch.tanh(self.second(hidden))  # problem
        return self.last(hidden)


def main():
    noise = np.random.default_rng(0)
    points, values = noise.normal(size=(40, 256, 64)), noise.normal(size=(40, 256, 8))
    model = Surrogate().double()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for batch, target in zip(points, values, strict=True):
        loss = nn.functional.mse_loss(model(torch.from_numpy(batch)), torch.from_numpy(target))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
