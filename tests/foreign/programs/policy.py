"""Proximal policy optimisation of Stable-Baselines3 on CartPole: a simulator in the loop, many tiny calls."""

import sys

import gymnasium
from stable_baselines3 import PPO


def learner() -> PPO:
    return PPO("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=64, batch_size=32, n_epochs=2, device="cpu")


def train() -> None:
    learner().learn(total_timesteps=256)


def infer() -> None:
    policy = learner()
    environment = policy.get_env()
    seen = environment.reset()
    for _ in range(40):
        action, _ = policy.predict(seen, deterministic=True)
        seen, *_ = environment.step(action)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
