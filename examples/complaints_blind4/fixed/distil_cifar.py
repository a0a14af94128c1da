"""Knowledge distillation: a wide convnet teaches a narrow one."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


def conv_bn(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class ConvNet(nn.Module):
    def __init__(self, width, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(
            conv_bn(3, width), conv_bn(width, width, 2),
            conv_bn(width, 2 * width), conv_bn(2 * width, 2 * width, 2),
            conv_bn(2 * width, 4 * width), nn.AdaptiveAvgPool2d(1))
        self.fc = nn.Linear(4 * width, num_classes)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


class Distiller(nn.Module):
    def __init__(self, student, teacher, temperature=4.0, alpha=0.7):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.T, self.alpha = temperature, alpha

    def forward(self, images, labels):
        self.teacher.eval()
        student_logits = self.student(images)
        with torch.no_grad():
            teacher_logits = self.teacher(images)
        hard = F.cross_entropy(student_logits, labels)
        soft = F.kl_div(F.log_softmax(student_logits / self.T, dim=1),
                        F.softmax(teacher_logits / self.T, dim=1), reduction="batchmean") * self.T ** 2
        return self.alpha * soft + (1 - self.alpha) * hard


def main():
    images = torch.randn(1024, 3, 32, 32)
    labels = torch.randint(0, 10, (1024,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True, drop_last=True)
    student, teacher = ConvNet(16), ConvNet(48)
    kd = Distiller(student, teacher)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)

    for epoch in range(2):
        kd.train()
        start, running = time.time(), 0.0
        for x, y in loader:
            loss = kd(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        took = time.time() - start
        print(f"epoch {epoch} loss {running / len(loader):.3f} {took:.1f}s {took / len(loader) * 1e3:.0f} ms/it")


if __name__ == "__main__":
    main()
