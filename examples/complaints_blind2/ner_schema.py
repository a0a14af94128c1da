# fmt: off
import json
import tempfile
from pathlib import Path
import torch
import torch.nn as nn

SCHEMA = Path(tempfile.mkdtemp()) / "schema.json"
SCHEMA.write_text(json.dumps({f"LABEL-{i}": {"id": i % 40, "aliases": [f"a{i}-{j}" for j in range(12)]} for i in range(6000)}))


def label_weights(n):
    schema = json.loads(SCHEMA.read_text())
    counts = [0.0] * n
    for entry in schema.values():
        counts[entry["id"]] += 1.0
    return torch.tensor(counts) / len(schema)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(3000, 64)
        self.rnn = nn.GRU(64, 96, batch_first=True)
        self.out = nn.Linear(96, 40)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def main():
    torch.manual_seed(0)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters())
    for step in range(100):
        x, y = torch.randint(0, 3000, (16, 20)), torch.randint(0, 40, (16, 20))
        weights = label_weights(40)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten(), weight=weights)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
