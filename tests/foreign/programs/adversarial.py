"""A GAN as a LightningModule that steps its two optimizers itself; pictures from noise at inference."""

import sys

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Adversaries(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(
            nn.Linear(16, 128), nn.LeakyReLU(0.2), nn.Linear(128, 256), nn.BatchNorm1d(256), nn.LeakyReLU(0.2),
            nn.Linear(256, 196), nn.Tanh(),
        )  # fmt: skip
        self.critic = nn.Sequential(nn.Linear(196, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.generator(noise)

    def training_step(self, batch: list[torch.Tensor], _: int) -> None:
        (real,) = batch
        of_generator, of_critic = self.optimizers()
        loss = nn.functional.binary_cross_entropy_with_logits
        noise = torch.randn(len(real), 16, device=self.device)
        self.toggle_optimizer(of_generator)
        fooled = loss(self.critic(self(noise)), torch.ones(len(real), 1))
        self.manual_backward(fooled)
        of_generator.step()
        of_generator.zero_grad()
        self.untoggle_optimizer(of_generator)
        self.toggle_optimizer(of_critic)
        told = loss(self.critic(real), torch.ones(len(real), 1))
        told = (told + loss(self.critic(self(noise).detach()), torch.zeros(len(real), 1))) / 2
        self.manual_backward(told)
        of_critic.step()
        of_critic.zero_grad()
        self.untoggle_optimizer(of_critic)

    def predict_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return self(torch.randn(len(batch[0]), 16))

    def configure_optimizers(self) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
        parts = (self.generator, self.critic)
        return tuple(torch.optim.Adam(part.parameters(), lr=2e-4, betas=(0.5, 0.999)) for part in parts)


def trainer() -> lightning.Trainer:
    return lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )


def loader() -> DataLoader:
    return DataLoader(TensorDataset(torch.rand(320, 196)), batch_size=32)


def train() -> None:
    trainer().fit(Adversaries(), loader())


def infer() -> None:
    trainer().predict(Adversaries(), loader())


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
