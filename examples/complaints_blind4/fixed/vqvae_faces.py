"""VQ-VAE on 32x32 faces."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class VectorQuantizer(nn.Module):
    def __init__(self, num_embeddings=512, embedding_dim=64, commitment_cost=0.25):
        super().__init__()
        self.commitment_cost = commitment_cost
        self.embedding = nn.Embedding(num_embeddings, embedding_dim)
        nn.init.uniform_(self.embedding.weight, -1 / num_embeddings, 1 / num_embeddings)

    def forward(self, z):
        z = z.permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, z.shape[-1])
        with torch.no_grad():
            weight = self.embedding.weight
            distances = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ weight.t() + weight.pow(2).sum(1)
            codes = distances.argmin(dim=1)
        quantized = self.embedding(codes).view_as(z)
        loss = F.mse_loss(quantized, z.detach()) + self.commitment_cost * F.mse_loss(quantized.detach(), z)
        quantized = z + (quantized - z).detach()
        usage = torch.bincount(codes, minlength=self.embedding.num_embeddings).float() / len(codes)
        perplexity = torch.exp(-(usage * (usage + 1e-10).log()).sum())
        return loss, quantized.permute(0, 3, 1, 2), perplexity


class VQVAE(nn.Module):
    def __init__(self, hidden=32, dim=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, hidden, 4, 2, 1), nn.ReLU(), nn.Conv2d(hidden, dim, 4, 2, 1), nn.ReLU(),
                                     nn.Conv2d(dim, dim, 3, 1, 1))
        self.vq = VectorQuantizer(512, dim)
        self.decoder = nn.Sequential(nn.Conv2d(dim, dim, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(dim, hidden, 4, 2, 1), nn.ReLU(),
                                     nn.ConvTranspose2d(hidden, 3, 4, 2, 1))

    def forward(self, x):
        vq_loss, quantized, perplexity = self.vq(self.encoder(x))
        return vq_loss, self.decoder(quantized), perplexity


def main():
    faces = torch.rand(1024, 3, 32, 32)
    model = VQVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start, steps = time.time(), 60
    for step in range(1, steps + 1):
        x = faces[torch.randint(0, len(faces), (16,))]
        vq_loss, recon, perplexity = model(x)
        loss = F.mse_loss(recon, x) + vq_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{step} loss {loss.item():.4f} perplexity {perplexity.item():.1f} {(time.time() - start) / step * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
