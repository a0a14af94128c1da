"""Train a small detector of defects on solar panels. Every image carries its own set of boxes."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

BATCH, STEPS = 32, 130


class PanelDataset(Dataset):
    """Thermal images with hot spots: the annotation of each image is a dictionary, as in COCO."""

    def __init__(self, n=4096, size=48):
        g = torch.Generator().manual_seed(3)
        self.images = torch.randint(0, 255, (256, 1, size, size), generator=g, dtype=torch.uint8)
        self.counts = torch.randint(2, 9, (n,), generator=g)
        self.boxes = torch.rand(n, 9, 4, generator=g)
        self.labels = torch.randint(0, 5, (n, 9), generator=g)
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        k = int(self.counts[i])
        boxes = self.boxes[i, :k].clone()
        image = self.images[i % 256].float().div_(255)
        return image, {
            "boxes": boxes,
            "labels": self.labels[i, :k].clone(),
            "area": boxes[:, 2] * boxes[:, 3],
            "iscrowd": torch.zeros(k, dtype=torch.uint8),
            "image_id": torch.tensor(i),
            "orig_size": torch.tensor(image.shape[-2:]),
            "size": torch.tensor(image.shape[-2:]),
        }


def collate(samples):
    images = torch.stack([s[0] for s in samples])
    targets = [s[1] for s in samples]
    counts = torch.tensor([len(t["labels"]) for t in targets])
    packed = {key: torch.cat([t[key].reshape(-1) for t in targets]) for key in targets[0]}
    return images, (counts, packed)


class Detector(nn.Module):
    def __init__(self, classes=5, queries=9):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.boxes = nn.Linear(576, queries * 4)
        self.labels = nn.Linear(576, queries * classes)
        self.queries, self.classes = queries, classes

    def forward(self, x):
        h = self.body(x)
        b = self.boxes(h).view(-1, self.queries, 4).sigmoid()
        return b, self.labels(h).view(-1, self.queries, self.classes)


def pad_targets(targets, queries=9):
    counts, packed = targets
    k = counts.tolist()
    boxes = nn.utils.rnn.pad_sequence(packed["boxes"].view(-1, 4).split(k), batch_first=True)
    labels = nn.utils.rnn.pad_sequence(packed["labels"].split(k), batch_first=True, padding_value=-100)
    return boxes, labels


def main():
    torch.manual_seed(0)
    loader = DataLoader(PanelDataset(), batch_size=BATCH, shuffle=True, num_workers=2, collate_fn=collate,
                        persistent_workers=True, drop_last=True)
    model = Detector()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start, step = time.perf_counter(), 0
    while step < STEPS:
        for images, targets in loader:
            boxes, labels = pad_targets(targets)
            pred_boxes, pred_labels = model(images)
            k = boxes.shape[1]
            valid = (labels != -100).unsqueeze(-1)
            loss = F.l1_loss(pred_boxes[:, :k] * valid, boxes * valid)
            loss = loss + F.cross_entropy(pred_labels[:, :k].flatten(0, 1), labels.flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}")
            if step == STEPS:
                break
    print(f"{(time.perf_counter() - start) / step * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
