"""Gaze direction from eye crops, logged to TensorBoard."""
import tempfile
import time

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter


class GazeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU())
        self.regressor = nn.Sequential(
            nn.Flatten(), nn.Linear(64 * 5 * 8, 160), nn.ReLU(), nn.Dropout(0.2), nn.Linear(160, 2))

    def forward(self, x):
        return self.regressor(self.features(x))


def angular_error(pred, gaze):
    def to_vector(angles):
        pitch, yaw = angles.unbind(-1)
        return torch.stack([pitch.cos() * yaw.sin(), pitch.sin(), pitch.cos() * yaw.cos()], -1)
    cos = (to_vector(pred) * to_vector(gaze)).sum(-1).clamp(-0.9999, 0.9999)
    return cos.acos().rad2deg().mean()


def eye_crops(n):
    g = torch.Generator().manual_seed(9)
    gaze = (torch.rand(n, 2, generator=g) - 0.5) * 1.2
    y = torch.arange(36.0).view(1, 36, 1) - 18 + 20 * gaze[:, :1, None]
    x = torch.arange(60.0).view(1, 1, 60) - 30 - 30 * gaze[:, 1:, None]
    img = 1 - torch.exp(-(y ** 2 + x ** 2) / 60)
    return (img + 0.1 * torch.randn(n, 36, 60, generator=g)).unsqueeze(1), gaze


def log_scalars(writer, loss, error, optimizer, step):
    writer.add_scalar("train/loss", loss.item(), step)
    writer.add_scalar("train/angular_error", error.item(), step)
    writer.add_scalar("train/lr", optimizer.param_groups[0]["lr"], step)


def log_weights(writer, model, step):
    for name, p in model.named_parameters():
        writer.add_histogram(f"weights/{name}", p, step)
        writer.add_histogram(f"grads/{name}", p.grad, step)


def main():
    torch.manual_seed(0)
    images, gaze = eye_crops(1280)
    model = GazeNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    with tempfile.TemporaryDirectory() as run_dir, SummaryWriter(run_dir) as writer:
        for epoch in range(4):
            begin = time.time()
            for idx in torch.randperm(len(images)).split(64):
                pred = model(images[idx])
                loss = nn.functional.mse_loss(pred, gaze[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                log_scalars(writer, loss, angular_error(pred.detach(), gaze[idx]), optimizer, step)
                log_weights(writer, model, step)
                step += 1
            print(f"epoch {epoch} loss {loss.item():.4f} {(time.time() - begin) * 1e3 / 20:.0f} ms per step")


if __name__ == "__main__":
    main()
