"""Short texts are padded to the longest that the model can take."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


LIMIT = 128


def padded(texts, length):
    rows = torch.zeros(len(texts), length, dtype=torch.long)
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = text
    return rows


class Classifier(nn.Module):
    def __init__(self, words=500, width=64):
        super().__init__()
        self.words = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, text):
        empty = text == 0
        return self.head(self.encoder(self.words(text), src_key_padding_mask=empty)[:, 0])


def main():
    texts = [torch.randint(1, 500, (int(length),)) for length in torch.randint(8, 25, (256,))]
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for step in range(16):
        chosen = texts[16 * step : 16 * step + 16]
        batch = padded(chosen, LIMIT)  # problem
        loss = nn.functional.cross_entropy(model(batch), torch.randint(0, 2, (16,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
