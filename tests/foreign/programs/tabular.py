"""TabNet of pytorch-tabnet: fit with evaluation and early stopping; predict."""

import sys
import warnings

import numpy as np
from pytorch_tabnet.tab_model import TabNetClassifier

warnings.simplefilter("ignore")


def data(count: int) -> tuple[np.ndarray, np.ndarray]:
    noise = np.random.default_rng(1)
    table = noise.normal(size=(count, 24)).astype(np.float32)
    return table, (table[:, 0] + table[:, 3] > 0).astype(np.int64)


def train() -> None:
    net = TabNetClassifier(n_d=8, n_a=8, n_steps=3, verbose=0, device_name="cpu")
    net.fit(*data(1600), eval_set=[data(400)], max_epochs=3, batch_size=128, virtual_batch_size=64, drop_last=False)


def infer() -> None:
    net = TabNetClassifier(n_d=8, n_a=8, n_steps=3, verbose=0, device_name="cpu")
    net.fit(*data(256), max_epochs=1, batch_size=128, virtual_batch_size=64)
    for _ in range(6):
        net.predict_proba(data(1024)[0])


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
