"""Recommend ingredients: a bag of ingredients goes through embeddings of bounded length and a small network."""
import time

import torch
import torch.nn as nn

STEPS, BATCH, ITEMS, DIM, PER = 300, 128, 30000, 64, 60


class RecipeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, DIM, sparse=True)
        self.gate = nn.Linear(DIM, DIM)
        self.net = nn.Sequential(nn.Linear(DIM, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                 nn.Linear(512, 40))

    def forward(self, bag):
        e = self.items(bag)
        e = e / e.norm(dim=-1, keepdim=True).clamp(min=1.0)
        weight = torch.softmax(self.gate(e).mean(-1), dim=1)
        return self.net((e * weight.unsqueeze(-1)).sum(1))


def make_recipes(n=8192):
    g = torch.Generator().manual_seed(8)
    cuisine = torch.randint(0, 40, (n,), generator=g)
    bag = torch.randint(0, ITEMS, (n, PER), generator=g)
    own = cuisine[:, None] * 700 + torch.randint(0, 700, (n, PER), generator=g)
    return torch.where(torch.rand(n, PER, generator=g) < 0.3, own, bag), cuisine


def main():
    torch.manual_seed(0)
    bags, cuisine = make_recipes()
    model = RecipeNet()
    dense = [p for name, p in model.named_parameters() if not name.startswith("items")]
    opt = torch.optim.AdamW(dense, lr=1e-3)
    opt_items = torch.optim.SGD(model.items.parameters(), lr=0.5)
    start = time.perf_counter()
    for step in range(STEPS):
        idx = torch.randint(0, len(bags), (BATCH,))
        loss = nn.functional.cross_entropy(model(bags[idx]), cuisine[idx])
        opt.zero_grad(set_to_none=True)
        opt_items.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        opt_items.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"{(time.perf_counter() - start) / STEPS * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
