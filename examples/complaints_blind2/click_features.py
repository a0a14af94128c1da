# fmt: off
import multiprocessing
import socket
import struct
import time
import torch
import torch.nn as nn


def serve(ready):
    server = socket.create_server(("127.0.0.1", 0))
    ready.put(server.getsockname()[1])
    peer, _ = server.accept()
    while data := peer.recv(4):
        time.sleep(0.03)
        peer.sendall(struct.pack("64f", *([0.5] * 64)))


class FeatureClient:
    def __init__(self, port):
        self.peer = socket.create_connection(("127.0.0.1", port))

    def fetch(self, key):
        self.peer.sendall(struct.pack("i", key))
        data = b""
        while len(data) < 256:
            data += self.peer.recv(256)
        return torch.tensor(struct.unpack("64f", data))


def main():
    ready = multiprocessing.Queue()
    process = multiprocessing.Process(target=serve, args=(ready,), daemon=True)
    process.start()
    client = FeatureClient(ready.get())
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    opt = torch.optim.Adam(net.parameters())
    for step in range(100):
        context = client.fetch(step)
        loss = net(torch.randn(128, 64) + context).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    process.terminate()


if __name__ == "__main__":
    main()
# ruff: noqa
