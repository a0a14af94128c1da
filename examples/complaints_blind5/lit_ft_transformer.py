import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

warnings.filterwarnings("ignore", ".*num_workers.*")


class FeatureTokenizer(nn.Module):
    def __init__(self, n_num, cardinalities, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_num, dim) * 0.02)
        self.bias = nn.Parameter(torch.zeros(n_num, dim))
        self.cat = nn.Embedding(sum(cardinalities), dim)
        self.register_buffer("offsets", torch.tensor([0] + cardinalities[:-1]).cumsum(0))
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))

    def forward(self, x_num, x_cat):
        num = x_num.unsqueeze(-1) * self.weight + self.bias
        cat = self.cat(x_cat + self.offsets)
        return torch.cat([self.cls.expand(len(x_num), -1, -1), num, cat], dim=1)


class FTTransformer(L.LightningModule):
    def __init__(self, n_num, cardinalities, dim=96, depth=3, heads=8):
        super().__init__()
        self.tokenizer = FeatureTokenizer(n_num, cardinalities, dim)
        layer = nn.TransformerEncoderLayer(
            dim, heads, dim_feedforward=2 * dim, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 1))

    def forward(self, x_num, x_cat):
        return self.head(self.encoder(self.tokenizer(x_num, x_cat))[:, 0]).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x_num, x_cat, y = batch
        loss = F.mse_loss(self(x_num, x_cat), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} train_loss {self.trainer.callback_metrics['train_loss']:.4f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=1e-5)


def main():
    L.seed_everything(0)
    n, cardinalities = 8192, [12, 7, 31, 4]
    x_num = torch.randn(n, 14)
    x_cat = torch.stack([torch.randint(0, c, (n,)) for c in cardinalities], 1)
    y = x_num[:, 0] * x_num[:, 1] + 0.1 * x_cat[:, 2] + 0.1 * torch.randn(n)
    dataset = TensorDataset(x_num, x_cat, (y - y.mean()) / y.std())
    sampler = BatchSampler(RandomSampler(dataset), batch_size=256, drop_last=True)
    loader = DataLoader(dataset, sampler=sampler, batch_size=None)
    trainer = L.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(FTTransformer(14, cardinalities), loader)


if __name__ == "__main__":
    main()
