"""Two-tower retrieval of news articles, in-batch softmax, sparse embeddings."""
import copy
import time

import torch
import torch.nn.functional as F
from torch import nn

N_USERS, N_ITEMS, DIM = 300_000, 60_000, 64


def tower():
    return nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, DIM))


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.user_emb = nn.Embedding(N_USERS, DIM, sparse=True)
        self.item_emb = nn.Embedding(N_ITEMS, DIM, sparse=True)
        self.user_tower = tower()
        self.item_tower = tower()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, users, items):
        u = F.normalize(self.user_tower(self.user_emb(users)), dim=-1)
        v = F.normalize(self.item_tower(self.item_emb(items)), dim=-1)
        return self.log_scale.exp() * u @ v.t()


class Clicks:
    def __init__(self, n_active=4000):
        self.g = torch.Generator().manual_seed(3)
        self.users = torch.randint(0, N_USERS, (n_active,), generator=self.g)
        self.topic = torch.randint(0, 300, (n_active,), generator=self.g)

    def batch(self, size):
        k = torch.randint(0, len(self.users), (size,), generator=self.g)
        items = self.topic[k] * 200 + torch.randint(0, 3, (size,), generator=self.g)
        return self.users[k], items


def train(n_steps=100, batch_size=512):
    torch.manual_seed(0)
    model = TwoTower()
    emb_params = [model.user_emb.weight, model.item_emb.weight]
    dense_params = [p for n, p in model.named_parameters() if "emb" not in n]
    optimizers = [torch.optim.SparseAdam(emb_params, lr=1e-2),
                  torch.optim.Adam(dense_params, lr=1e-3)]
    clicks = Clicks()
    target = torch.arange(batch_size)

    running, best_loss, best_state = None, float("inf"), None
    t0 = time.time()
    for step in range(1, n_steps + 1):
        users, items = clicks.batch(batch_size)
        loss = F.cross_entropy(model(users, items), target)
        for opt in optimizers:
            opt.zero_grad()
        loss.backward()
        for opt in optimizers:
            opt.step()

        running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
        if step % 25 == 0 and running < best_loss:
            best_loss = running
            best_state = copy.deepcopy(model.state_dict())
        if step % 25 == 0:
            print(f"[{step}/{n_steps}] loss {running:.3f}, {(time.time() - t0) / step * 1e3:.1f} ms/it")

    model.load_state_dict(best_state)
    return model


if __name__ == "__main__":
    train()
