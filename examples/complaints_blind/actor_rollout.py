# fmt: off
import math
import random
import time
import torch
import torch.nn as nn
from torch.distributions import Categorical


class PoleCart:
    def reset(self):
        self.s = [random.uniform(-0.05, 0.05) for _ in range(4)]
        return list(self.s)

    def step(self, action):
        x, v, th, w = self.s
        force = 10.0 if action else -10.0
        sin, cos = math.sin(th), math.cos(th)
        tmp = (force + 0.05 * w * w * sin) / 1.1
        acc = (9.8 * sin - cos * tmp) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        self.s = [x + 0.02 * v, v + 0.02 * (tmp - 0.05 * acc * cos / 1.1),
                  th + 0.02 * w, w + 0.02 * acc]
        return list(self.s), 1.0 - min(1.0, abs(th)), abs(th) > 3.0 or abs(x) > 40


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.pi = nn.Linear(128, 2)
        self.value = nn.Linear(128, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        return self.pi(h), self.value(h).squeeze(-1)


def collect(envs, policy, horizon):
    obs_all, act_all, rew_all = [], [], []
    for env in envs:
        obs, rewards = env.reset(), []
        for _ in range(horizon):
            obs_t = torch.tensor([obs])
            with torch.no_grad():
                logits, _ = policy(obs_t)
                action = Categorical(logits=logits).sample().item()
            obs_all.append(obs_t)
            act_all.append(action)
            obs, reward, done = env.step(action)
            rewards.append(reward)
            if done:
                obs = env.reset()
        ret, running = [], 0.0
        for r in reversed(rewards):
            running = r + 0.99 * running
            ret.append(running)
        rew_all.extend(reversed(ret))
    return torch.cat(obs_all), torch.tensor(act_all), torch.tensor(rew_all)


def main():
    torch.manual_seed(0)
    random.seed(0)
    envs = [PoleCart() for _ in range(8)]
    policy = Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=3e-4)
    t0 = time.perf_counter()
    for update in range(1, 81):
        obs, actions, returns = collect(envs, policy, horizon=48)
        logits, values = policy(obs)
        adv = returns - values.detach()
        loss = -(Categorical(logits=logits).log_prob(actions) * adv).mean() + (returns - values).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if update % 20 == 0:
            print(f"update {update} return {returns.mean():.2f} {(time.perf_counter() - t0) / update:.3f} s/update")


if __name__ == "__main__":
    main()
# ruff: noqa
