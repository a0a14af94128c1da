# fmt: off
import time
import torch
import torch.nn as nn


class Features(nn.Module):
    def __init__(self, n_in=64, n_out=96):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                                 nn.Linear(256, n_out))

    def forward(self, x):
        return self.net(x)


def sq_dist(a, b):
    diff = a.unsqueeze(1) - b.unsqueeze(0)
    return diff.pow(2).sum(-1)


def mmd(a, b, scales=(0.5, 1.0, 2.0)):
    daa, dbb, dab = sq_dist(a, a), sq_dist(b, b), sq_dist(a, b)
    base = dab.detach().mean()
    total = 0.0
    for s in scales:
        kernel = lambda d: torch.exp(-d / (s * base)).mean()
        total = total + kernel(daa) + kernel(dbb) - 2 * kernel(dab)
    return total


def main():
    torch.manual_seed(0)
    source = torch.randn(5000, 64)
    labels = (source[:, :4].sum(1) > 0).long()
    target = torch.randn(5000, 64) * 1.3 + 0.4
    features, classifier = Features(), nn.Linear(96, 2)
    params = list(features.parameters()) + list(classifier.parameters())
    opt = torch.optim.Adam(params, lr=1e-3)
    t0 = time.perf_counter()
    for step in range(1, 61):
        i = torch.randint(0, 5000, (256,))
        j = torch.randint(0, 5000, (256,))
        f_src, f_tgt = features(source[i]), features(target[j])
        ce = nn.functional.cross_entropy(classifier(f_src), labels[i])
        loss = ce + 0.5 * mmd(f_src, f_tgt)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step {step} ce {ce.item():.3f} loss {loss.item():.3f} "
                  f"{(time.perf_counter() - t0) / step * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
