"""Policy gradient (PPO, one epoch a rollout) for a 16-joint reaching task with a vectorised toy simulator."""
import argparse
import time

import torch
from torch import nn
from torch.distributions import Independent, Normal

JOINTS = 16


class Reacher:
    """Many arms at once: the reward is the closeness to a target pose."""

    def __init__(self, count, seed=0):
        self.generator = torch.Generator().manual_seed(seed)
        self.count = count
        self.reset()

    def reset(self):
        self.pose = torch.randn(self.count, JOINTS, generator=self.generator)
        self.target = torch.randn(self.count, JOINTS, generator=self.generator)
        return self.observe()

    def observe(self):
        return torch.cat([self.pose, self.target, self.target - self.pose], dim=1)

    def step(self, action):
        self.pose = self.pose + 0.1 * action.clamp(-1, 1)
        return self.observe(), -(self.target - self.pose).pow(2).mean(dim=1)


class ActorCritic(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(3 * JOINTS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.mean = nn.Linear(width, JOINTS)
        self.spread = nn.Linear(width, JOINTS)
        self.value = nn.Linear(width, 1)

    def forward(self, obs):
        hidden = self.body(obs)
        std = nn.functional.softplus(self.spread(hidden)) + 1e-3
        dist = Independent(Normal(self.mean(hidden), std), 1)
        return dist, self.value(hidden).squeeze(-1)


def returns(rewards, gamma=0.97):
    total = torch.zeros_like(rewards[0])
    out = []
    for reward in reversed(rewards):
        total = reward + gamma * total
        out.append(total)
    return torch.stack(out[::-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=90)
    parser.add_argument("--arms", type=int, default=256)
    parser.add_argument("--horizon", type=int, default=8)
    args = parser.parse_args()

    torch.manual_seed(0)
    env = Reacher(args.arms)
    net = ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-4)
    started = time.perf_counter()

    for update in range(args.updates):
        obs = env.reset()
        seen, actions, logps, rewards = [], [], [], []
        with torch.no_grad():
            for _ in range(args.horizon):
                dist, _ = net(obs)
                action = dist.sample()
                seen.append(obs)
                actions.append(action)
                logps.append(dist.log_prob(action))
                obs, reward = env.step(action)
                rewards.append(reward)
        target = returns(rewards).flatten()
        dist, value = net(torch.cat(seen))
        ratio = (dist.log_prob(torch.cat(actions)) - torch.cat(logps)).exp()
        advantage = target - value.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        policy = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        loss = policy + 0.5 * (value - target).pow(2).mean() - 0.001 * dist.entropy().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if update % 20 == 0:
            print(f"update {update}: reward {target.mean():.3f}")
    print(f"{(time.perf_counter() - started) / args.updates * 1000:.1f} ms an update")


if __name__ == "__main__":
    main()
