"""skorch: a network as an estimator of scikit-learn, fitted with a validation split; probabilities of new rows."""

import sys

import numpy as np
from skorch import NeuralNetClassifier
from torch import nn, optim


class Net(nn.Module):
    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(20, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)
        )

    def forward(self, rows):
        return self.layers(rows)


def data(count: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(0).normal(size=(count, 20)).astype(np.float32)
    return rows, (rows.sum(1) > 0).astype(np.int64)


def net() -> NeuralNetClassifier:
    return NeuralNetClassifier(
        Net, criterion=nn.CrossEntropyLoss, optimizer=optim.Adam, max_epochs=3, batch_size=128, verbose=0
    )


def train() -> None:
    net().fit(*data(3000))


def infer() -> None:
    fitted = net().initialize()
    for _ in range(4):
        fitted.predict_proba(data(2000)[0])


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
