"""Credit risk with Lightning."""
import logging
import time
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class CreditModel(L.LightningModule):
    def __init__(self, columns=48, width=192):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(columns, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.binary_cross_entropy_with_logits(self.net(x).squeeze(1), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x).squeeze(1)
        self.log("val_loss", F.binary_cross_entropy_with_logits(logits, y))
        self.log("val_acc", ((logits > 0).float() == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def make_loans(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 48, generator=g)
    y = (x[:, :6].sum(1) + torch.randn(count, generator=g) > 0).float()
    return TensorDataset(x, y)


def main():
    L.seed_everything(0, verbose=False)
    train_loader = DataLoader(make_loans(12_800, 0), batch_size=128, shuffle=True)
    val_loader = DataLoader(make_loans(2_560, 1), batch_size=128)
    trainer = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        num_sanity_val_steps=0, val_check_interval=1.0)
    model = CreditModel()
    begin = time.perf_counter()
    trainer.fit(model, train_loader, val_loader)
    took = time.perf_counter() - begin
    print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
    print(f"{took / trainer.global_step * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
