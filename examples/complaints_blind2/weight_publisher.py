# fmt: off
import threading
import time
import torch
import torch.nn as nn


class Publisher:
    def __init__(self, net):
        self.net, self.lock, self.done = net, threading.Lock(), False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.done:
            with self.lock:
                self.snapshot = [p.detach().clone() for p in self.net.parameters()]
                time.sleep(0.04)
            time.sleep(0.001)

    def update(self, opt):
        with self.lock:
            opt.step()


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    publisher = Publisher(net)
    for step in range(100):
        loss = net(torch.randn(64, 64)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        publisher.update(opt)
    publisher.done = True


if __name__ == "__main__":
    main()
# ruff: noqa
