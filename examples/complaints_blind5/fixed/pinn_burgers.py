import time

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(1234)
np.random.seed(1234)

nu = 0.01 / np.pi


class DNN(nn.Module):
    def __init__(self, layers):
        super().__init__()
        mods = []
        for i in range(len(layers) - 2):
            mods += [nn.Linear(layers[i], layers[i + 1]), nn.Tanh()]
        mods.append(nn.Linear(layers[-2], layers[-1]))
        self.net = nn.Sequential(*mods)

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


class PhysicsInformedNN:
    def __init__(self, N_u=100, N_f=600):
        x0 = np.random.uniform(-1, 1, (N_u, 1))
        self.x_u = torch.tensor(x0, dtype=torch.float32)
        self.t_u = torch.zeros_like(self.x_u)
        self.u = torch.tensor(-np.sin(np.pi * x0), dtype=torch.float32)
        self.t_b = torch.rand(N_u, 1)
        self.x_b = torch.sign(torch.rand(N_u, 1) - 0.5)
        self.x_f = (torch.rand(N_f, 1) * 2 - 1).requires_grad_(True)
        self.t_f = torch.rand(N_f, 1).requires_grad_(True)
        self.dnn = DNN([2, 20, 20, 20, 20, 20, 20, 1])
        self.optimizer = torch.optim.Adam(self.dnn.parameters(), lr=2e-3)

    def grad(self, y, x):
        return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]

    def net_f(self, x, t):
        u = self.dnn(x, t)
        u_t = self.grad(u, t)
        u_x = self.grad(u, x)
        u_xx = self.grad(u_x, x)
        return u_t + u * u_x - nu * u_xx

    def loss_func(self):
        loss_u = torch.mean((self.u - self.dnn(self.x_u, self.t_u)) ** 2)
        loss_b = torch.mean(self.dnn(self.x_b, self.t_b) ** 2)
        loss_f = torch.mean(self.net_f(self.x_f, self.t_f) ** 2)
        return loss_u + loss_b + loss_f

    def train(self, n_iter):
        self.dnn.train()
        start = time.time()
        for it in range(n_iter):
            self.optimizer.zero_grad()
            loss = self.loss_func()
            loss.backward()
            self.optimizer.step()
            if (it + 1) % 50 == 0:
                print(f"It: {it + 1}, Loss: {loss.item():.3e}, Time: {time.time() - start:.2f}")
                start = time.time()


if __name__ == "__main__":
    model = PhysicsInformedNN()
    model.train(300)
