"""Items are looked up by multiplying one-hot rows with a matrix."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Recommender(nn.Module):
    def __init__(self, items=4000, width=64):
        super().__init__()
        self.items = items
        self.weight = nn.Parameter(torch.randn(items, width) / width)
        self.mixed = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 50)

    def forward(self, session):
        known = nn.functional.one_hot(session, self.items).float() @ self.weight  # problem
        return self.head(self.mixed(known)[0][:, -1])


def main():
    model = Recommender()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        session, following = torch.randint(0, 4000, (32, 10)), torch.randint(0, 50, (32,))
        loss = nn.functional.cross_entropy(model(session), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
