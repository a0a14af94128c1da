"""Voxel feature encoder for lidar sweeps, PointPillars style."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)

GRID = (96, 96, 8)
RANGE = 40.0


def fake_sweep(points, generator):
    """A ground plane, a few walls and some boxes."""
    ground = torch.rand(points // 2, 3, generator=generator)
    ground = (ground - 0.5) * torch.tensor([2 * RANGE, 2 * RANGE, 0.3])
    centres = (torch.rand(16, 3, generator=generator) - 0.5) * torch.tensor([RANGE, RANGE, 2.0])
    which = torch.randint(0, 16, (points - points // 2,), generator=generator)
    boxes = centres[which] + torch.randn(len(which), 3, generator=generator)
    xyz = torch.cat([ground, boxes])
    return torch.cat([xyz, torch.rand(len(xyz), 1, generator=generator)], dim=1)


def voxelize(xyz):
    size = torch.tensor(GRID)
    scaled = (xyz + RANGE) / (2 * RANGE) * torch.tensor([GRID[0], GRID[1], GRID[2]])
    coords = scaled.floor().long()
    coords = torch.minimum(coords.clamp(min=0), size - 1)
    keys = (coords[:, 0] * GRID[1] + coords[:, 1]) * GRID[2] + coords[:, 2]
    keys, inverse = torch.unique(keys, return_inverse=True)
    voxels = torch.stack([keys // (GRID[1] * GRID[2]), keys // GRID[2] % GRID[1], keys % GRID[2]], dim=1)
    return voxels, inverse


class VoxelEncoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(7, width), nn.ReLU(), nn.Linear(width, width))
        self.width = width

    def forward(self, points):
        voxels, inverse = voxelize(points[:, :3])
        count = torch.zeros(len(voxels)).index_add_(0, inverse, torch.ones(len(points)))
        mean = torch.zeros(len(voxels), 3).index_add_(0, inverse, points[:, :3])
        mean = mean / count.unsqueeze(1)
        feats = torch.cat([points, points[:, :3] - mean[inverse]], dim=1)
        feats = self.point(feats)
        pooled = torch.zeros(len(voxels), self.width).index_add_(0, inverse, feats)
        return voxels, pooled / count.unsqueeze(1)


class Detector(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.encoder = VoxelEncoder(width)
        self.head = nn.Sequential(
            nn.Conv2d(width, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 1, 1),
        )

    def forward(self, sweeps):
        bev = []
        for points in sweeps:
            voxels, feats = self.encoder(points)
            flat = voxels[:, 0] * GRID[1] + voxels[:, 1]
            plane = torch.zeros(GRID[0] * GRID[1], feats.shape[1]).index_add_(0, flat, feats)
            bev.append(plane.t().reshape(-1, GRID[0], GRID[1]))
        return self.head(torch.stack(bev))


def main(steps=80, batch=2, points=18000):
    generator = torch.Generator().manual_seed(3)
    sweeps = [fake_sweep(points, generator) for _ in range(24)]
    heat = (torch.rand(24, 1, GRID[0] // 2, GRID[1] // 2, generator=generator) > 0.97).float()
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        pick = torch.randint(0, len(sweeps), (batch,), generator=generator).tolist()
        logits = model([sweeps[i] for i in pick])
        loss = F.binary_cross_entropy_with_logits(logits, heat[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{step:4d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
