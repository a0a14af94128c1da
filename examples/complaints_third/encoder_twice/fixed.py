"""The encoder sees each picture once."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Encoder(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten(2)
        )


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = nn.GRU(32, 64, batch_first=True)
        self.head = nn.Linear(64, 100)

    @torch.no_grad()
    def inference(self, pictures):
        last = self.encoder(pictures)
        return self.head(self.decoder(last.transpose(1, 2))[0][:, -1]).argmax(-1)


def main():
    model = Reader().eval()
    for _ in range(30):
        model.inference(torch.randn(4, 3, 48, 48))


main()
