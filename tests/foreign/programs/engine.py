"""ignite's supervised trainer and evaluator with metrics, a scheduler and early stopping over a small CNN."""

import sys

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, TerminateOnNan
from ignite.metrics import Accuracy, Loss, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(128, 10),
    )  # fmt: skip


def loader(count: int) -> DataLoader:
    return DataLoader(
        TensorDataset(torch.randn(count, 1, 28, 28), torch.randint(0, 10, (count,))), batch_size=32, shuffle=True
    )


def train() -> None:
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    trainer = create_supervised_trainer(net, optimizer, nn.CrossEntropyLoss())
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
    evaluator = create_supervised_evaluator(net, {"accuracy": Accuracy(), "loss": Loss(nn.CrossEntropyLoss())})
    held = loader(64)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(held))
    trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
    stopping = EarlyStopping(patience=5, score_function=lambda engine: -engine.state.metrics["loss"], trainer=trainer)
    evaluator.add_event_handler(Events.COMPLETED, stopping)
    trainer.run(loader(320), max_epochs=2)


def infer() -> None:
    net = network()
    create_supervised_evaluator(net, {"accuracy": Accuracy()}).run(loader(256))


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
