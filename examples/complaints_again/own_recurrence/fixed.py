"""The library's recurrent layer takes the whole sequence."""

import torch
from torch import nn

torch.set_num_threads(1)


class Recurrent(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.steps = nn.RNN(inputs, hidden)
        self.out = nn.Linear(hidden, outputs)

    def forward(self, sequence):
        return self.out(self.steps(sequence)[0])


def main():
    model = Recurrent(24, 48, 6)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(15):
        sequence, target = torch.randn(120, 8, 24), torch.randn(120, 8, 6)
        loss = nn.functional.mse_loss(model(sequence), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
