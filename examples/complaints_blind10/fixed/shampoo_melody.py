"""Train a GRU on melodies with a hand-written Shampoo optimizer."""
import time

import torch
import torch.nn as nn

STEPS, BATCH, LENGTH, NOTES = 110, 32, 32, 96


class Shampoo(torch.optim.Optimizer):
    """Shampoo with one preconditioner for each axis of a matrix; vectors get plain momentum."""

    def __init__(self, params, lr=1e-2, momentum=0.9, beta=0.95, eps=1e-4):
        super().__init__(params, {"lr": lr, "momentum": momentum, "beta": beta, "eps": eps})

    @staticmethod
    def inverse_root(mat, eps, power):
        values, vectors = torch.linalg.eigh(mat + eps * torch.eye(mat.shape[0]))
        return vectors @ torch.diag(values.clamp(min=eps) ** power) @ vectors.T

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["t"] = 0
                    state["momentum"] = torch.zeros_like(p)
                    if p.dim() == 2:
                        state["left"] = torch.zeros(p.shape[0], p.shape[0])
                        state["right"] = torch.zeros(p.shape[1], p.shape[1])
                grad = p.grad
                if p.dim() == 2:
                    state["left"].mul_(group["beta"]).add_(grad @ grad.T)
                    state["right"].mul_(group["beta"]).add_(grad.T @ grad)
                    if state["t"] % 20 == 0:
                        state["left_root"] = self.inverse_root(state["left"], group["eps"], -0.25)
                        state["right_root"] = self.inverse_root(state["right"], group["eps"], -0.25)
                    grad = state["left_root"] @ grad @ state["right_root"]
                state["t"] += 1
                state["momentum"].mul_(group["momentum"]).add_(grad)
                p.add_(state["momentum"], alpha=-group["lr"])


class Melody(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.emb = nn.Embedding(NOTES, 64)
        self.rnn = nn.GRU(64, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, NOTES)

    def forward(self, notes):
        h, _ = self.rnn(self.emb(notes))
        return self.head(h)


def make_melodies(n=2048):
    g = torch.Generator().manual_seed(2)
    start = torch.randint(0, NOTES, (n, 1), generator=g)
    jumps = torch.randint(-4, 5, (n, LENGTH), generator=g).cumsum(1)
    return (start + jumps) % NOTES


def main():
    torch.manual_seed(0)
    model = Melody()
    opt = Shampoo(model.parameters(), lr=5e-3)
    data = make_melodies()
    start = time.perf_counter()
    for step in range(STEPS):
        batch = data[torch.randint(0, len(data), (BATCH,))]
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % 20 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"{(time.perf_counter() - start) / STEPS * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
