# fmt: off
import torch
import torch.nn as nn


class Monitor:
    def __init__(self, net):
        self.stats = {}
        for name, module in net.named_modules():
            if isinstance(module, nn.ReLU):
                module.register_forward_hook(self.hook(name))

    def hook(self, name):
        def record(module, inputs, output):
            flat = output.detach().flatten()
            self.stats[name] = (torch.histc(flat, bins=64), flat.kthvalue(flat.numel() // 2).values)
        return record


def main():
    torch.manual_seed(0)
    layers = []
    for i in range(6):
        layers += [nn.Conv2d(1 if i == 0 else 12, 12, 3, padding=1), nn.ReLU()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5))
    monitor = Monitor(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(60):
        x, y = torch.randn(16, 1, 32, 32), torch.randint(0, 5, (16,))
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
