# fmt: off
import time
import torch
import torch.nn as nn

N_ITEMS = 120_000


class SessionModel(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.items = nn.Embedding(N_ITEMS, dim)
        nn.init.normal_(self.items.weight, std=0.02)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.proj = nn.Linear(dim, dim)

    def forward(self, session, candidates):
        _, h = self.gru(self.items(session))
        user = self.proj(h[-1])
        return torch.einsum("bd,bcd->bc", user, self.items(candidates))


def sample_sessions(batch, length, n_negative, gen):
    popular = torch.rand(batch, length + 1, generator=gen).pow(3).mul(N_ITEMS).long()
    negatives = torch.randint(0, N_ITEMS, (batch, n_negative), generator=gen)
    return popular[:, :-1], torch.cat([popular[:, -1:], negatives], dim=1)


def recall_at_5(scores):
    return (scores.topk(5, dim=1).indices == 0).any(1).float().mean()


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(7)
    model = SessionModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    target = torch.zeros(64, dtype=torch.long)
    hits, t0 = [], time.perf_counter()
    for step in range(1, 121):
        session, candidates = sample_sessions(64, 12, 30, gen)
        scores = model(session, candidates)
        loss = nn.functional.cross_entropy(scores, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits.append(recall_at_5(scores.detach()))
        if step % 20 == 0:
            recall = torch.stack(hits[-20:]).mean().item()
            print(f"step {step} loss {loss.item():.3f} recall@5 {recall:.3f} "
                  f"{(time.perf_counter() - t0) / step * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
