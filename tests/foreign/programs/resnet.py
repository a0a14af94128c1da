"""A ResNet of transformers, fed by two worker processes that augment; inference by a scripted trace."""

import sys

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import ResNetConfig, ResNetForImageClassification


class Images(Dataset):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = torch.rand(3, 40, 40, generator=torch.Generator().manual_seed(index))
        top, left = index % 8, index % 5
        return image[:, top : top + 32, left : left + 32].flip(-1).contiguous(), index % 3


def model() -> ResNetForImageClassification:
    config = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[2, 2], layer_type="basic", num_labels=3)
    return ResNetForImageClassification(config)


def train() -> None:
    net = model().train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=16)
    for _ in range(2):
        for image, label in DataLoader(Images(), batch_size=8, num_workers=2):
            optimizer.zero_grad()
            net(pixel_values=image, labels=label).loss.backward()
            optimizer.step()
            schedule.step()


@torch.no_grad()
def infer() -> None:
    traced = torch.jit.trace(model().eval(), torch.rand(4, 3, 32, 32), strict=False)
    for image, _ in DataLoader(Images(), batch_size=4):
        traced(image)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
