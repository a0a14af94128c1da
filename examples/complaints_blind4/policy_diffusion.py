"""Diffusion policy: a residual MLP denoises robot actions, weights are averaged for evaluation."""
import copy
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
OBS, ACT, HORIZON, HIDDEN, DEPTH, T = 20, 7, 8, 160, 20, 100


def timestep_embedding(t, dim):
    freqs = torch.exp(-math.log(10000) * torch.arange(dim // 2) / (dim // 2))
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.sin(), args.cos()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, dim)
        self.fc2 = nn.Linear(dim, dim)
        self.cond = nn.Linear(dim, dim)

    def forward(self, x, c):
        return x + self.fc2(F.silu(self.fc1(self.norm(x)) + self.cond(c)))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(ACT * HORIZON, HIDDEN)
        self.obs = nn.Linear(OBS, HIDDEN)
        self.blocks = nn.ModuleList([ResBlock(HIDDEN) for _ in range(DEPTH)])
        self.out = nn.Linear(HIDDEN, ACT * HORIZON)

    def forward(self, noisy, t, obs):
        c = self.obs(obs) + timestep_embedding(t, HIDDEN)
        x = self.inp(noisy)
        for block in self.blocks:
            x = block(x, c)
        return self.out(x)


class EMA:
    def __init__(self, model, decay=0.995):
        self.decay = decay
        self.shadow = copy.deepcopy(model.state_dict())

    def update(self, model):
        state = copy.deepcopy(model.state_dict())
        for name, value in state.items():
            self.shadow[name] = self.decay * self.shadow[name] + (1.0 - self.decay) * value


betas = torch.linspace(1e-4, 0.02, T)
alphas_bar = torch.cumprod(1 - betas, dim=0)
obs_data = torch.randn(4096, OBS)
act_data = torch.tanh(obs_data @ torch.randn(OBS, ACT * HORIZON) * 0.3)

model = Denoiser()
ema = EMA(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
begin = time.time()
for step in range(1, 401):
    idx = torch.randint(0, len(obs_data), (64,))
    t = torch.randint(0, T, (64,))
    noise = torch.randn(64, ACT * HORIZON)
    a = alphas_bar[t][:, None]
    noisy = a.sqrt() * act_data[idx] + (1 - a).sqrt() * noise
    loss = F.mse_loss(model(noisy, t, obs_data[idx]), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
    if step % 100 == 0:
        print(f"{step}: loss {loss.item():.4f}, {(time.time() - begin) / step * 1e3:.1f} ms per step")
