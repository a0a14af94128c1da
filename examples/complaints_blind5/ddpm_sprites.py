import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class ResBlock(nn.Module):
    def __init__(self, c_in, c_out, t_dim):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, c_in), nn.Conv2d(c_in, c_out, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, c_out), nn.Conv2d(c_out, c_out, 3, padding=1)
        self.time = nn.Linear(t_dim, c_out)
        self.skip = nn.Conv2d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(emb)[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class TinyUNet(nn.Module):
    def __init__(self, ch=32, t_dim=128):
        super().__init__()
        half = t_dim // 2
        self.register_buffer("freqs", torch.exp(-math.log(10000) * torch.arange(half) / half))
        self.mlp = nn.Sequential(nn.Linear(t_dim, t_dim), nn.SiLU(), nn.Linear(t_dim, t_dim))
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.down1, self.pool1 = ResBlock(ch, ch, t_dim), nn.Conv2d(ch, ch, 3, stride=2, padding=1)
        self.down2, self.pool2 = ResBlock(ch, 2 * ch, t_dim), nn.Conv2d(2 * ch, 2 * ch, 3, stride=2, padding=1)
        self.mid = ResBlock(2 * ch, 2 * ch, t_dim)
        self.up2, self.up1 = ResBlock(4 * ch, ch, t_dim), ResBlock(2 * ch, ch, t_dim)
        self.out = nn.Conv2d(ch, 3, 3, padding=1)

    def forward(self, x, t):
        angles = t[:, None] * self.freqs
        emb = self.mlp(torch.cat([angles.sin(), angles.cos()], dim=1))
        h1 = self.down1(self.inp(x), emb)
        h2 = self.down2(self.pool1(h1), emb)
        h = self.mid(self.pool2(h2), emb)
        h = self.up2(torch.cat([F.interpolate(h, scale_factor=2.0), h2], 1), emb)
        h = self.up1(torch.cat([F.interpolate(h, scale_factor=2.0), h1], 1), emb)
        return self.out(F.silu(h))


@torch.no_grad()
def ema_update(ema_params, params, decay=0.995):
    torch._foreach_lerp_(ema_params, params, 1 - decay)


def main():
    torch.manual_seed(0)
    T = 1000
    alpha_bar = torch.cumprod(1 - torch.linspace(1e-4, 0.02, T), 0)
    sprites = torch.rand(1024, 3, 8, 8).repeat_interleave(4, 2).repeat_interleave(4, 3) * 2 - 1
    model = TinyUNet()
    params = list(model.parameters())
    ema_params = [p.detach().clone() for p in params]
    optimizer = torch.optim.AdamW(params, lr=2e-4)
    start = time.time()
    for step in range(1, 61):
        x0 = sprites[torch.randint(0, len(sprites), (16,))]
        t = torch.randint(0, T, (16,))
        noise = torch.randn_like(x0)
        a = alpha_bar[t].view(-1, 1, 1, 1)
        loss = F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ema_update(ema_params, params)
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - start) / 10 * 1000:.0f} ms")
            start = time.time()


if __name__ == "__main__":
    main()
