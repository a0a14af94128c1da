"""Healthy: embed documents with a transformer encoder, batched, and write one array at the end."""
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
VOCAB, DIM, LENGTH = 8000, 256, 64


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCAB, DIM)
        self.position = nn.Embedding(LENGTH, DIM)
        layer = nn.TransformerEncoderLayer(DIM, 4, 4 * DIM, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.register_buffer("places", torch.arange(LENGTH))

    def forward(self, ids):
        x = self.encoder(self.token(ids) + self.position(self.places))
        return nn.functional.normalize(x.mean(dim=1), dim=1)


def main(documents=2400, batch=32):
    dataset = TensorDataset(torch.randint(0, VOCAB, (documents, LENGTH)))
    loader = DataLoader(dataset, batch_size=batch)
    model = Embedder().eval()
    vectors = torch.empty(documents, DIM)
    done = 0
    with torch.inference_mode():
        for (ids,) in loader:
            out = model(ids)
            vectors[done:done + len(out)] = out
            done += len(out)
            if done % 800 == 0:
                print(f"{done} of {documents} documents")
    with tempfile.NamedTemporaryFile(suffix=".npy") as target:
        np.save(target, vectors.numpy())
    print("norm of the mean vector:", round(float(vectors.mean(0).norm()), 4))


if __name__ == "__main__":
    main()
