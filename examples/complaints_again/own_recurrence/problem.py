"""A recurrent layer of one's own, one time step after another."""

import torch
from torch import nn

torch.set_num_threads(1)


class Recurrent(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.hidden = hidden
        self.step = nn.Linear(inputs + hidden, hidden)
        self.out = nn.Linear(hidden, outputs)

    def forward(self, sequence):
        state = sequence.new_zeros(sequence.size(1), self.hidden)
        outputs = []
        for moment in sequence:
            state = torch.tanh(self.step(torch.cat((moment, state), 1)))  # problem
            outputs.append(self.out(state))
        return torch.stack(outputs)


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
