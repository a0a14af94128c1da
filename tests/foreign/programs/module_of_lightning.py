"""A LightningModule with worker processes, validation and metrics; inference by Trainer.predict."""

import sys

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy


class Digits(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 36, 10))
        self.accuracy = MulticlassAccuracy(10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.net(image)

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        self.accuracy(self(batch[0]), batch[1])
        self.log("accuracy", self.accuracy)

    def predict_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return self(batch[0]).argmax(-1)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def loader(workers: int) -> DataLoader:
    data = TensorDataset(torch.rand(64, 1, 14, 14), torch.randint(0, 10, (64,)))
    return DataLoader(data, batch_size=8, num_workers=workers, persistent_workers=workers > 0)


def trainer() -> lightning.Trainer:
    return lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )


def train() -> None:
    trainer().fit(Digits(), loader(2), loader(0))


def infer() -> None:
    trainer().predict(Digits(), loader(0))


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
