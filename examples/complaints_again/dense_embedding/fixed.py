"""A large vocabulary of which a batch uses a few rows: gradients and updates are of these alone."""

import torch
from torch import nn

torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(200_000, 64, sparse=True)
        self.tags = nn.Linear(64, 20)

    def forward(self, text):
        return self.tags(self.words(text).mean(1))


def main():
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        text, labels = torch.randint(0, 200_000, (16, 30)), torch.randint(0, 20, (16,))
        loss = nn.functional.cross_entropy(model(text), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
