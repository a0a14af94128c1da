"""A batch of sequences is cut out of the buffer one after the other."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def sequences(buffer, starts, columns, length):
    pairs = zip(starts.tolist(), columns.tolist(), strict=True)
    return torch.stack([buffer[t : t + length, c] for t, c in pairs])  # problem


def main():
    buffer = torch.randn(5000, 4, 16)
    model = nn.GRU(16, 8, batch_first=True)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(40):
        starts, columns = torch.randint(0, 4990, (512,)), torch.randint(0, 4, (512,))
        out, _ = model(sequences(buffer, starts, columns, 4))
        loss = out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
