"""A LightningModule that trains an autoencoder of images."""

import lightning as L
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class LitAutoEncoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 28 * 28))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        x = x.view(x.size(0), -1)
        x_hat = self.decoder(self.encoder(x))
        loss = nn.functional.mse_loss(x_hat, x)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    L.seed_everything(1)
    images = TensorDataset(torch.rand(4096, 1, 28, 28))
    trainer = L.Trainer(max_epochs=1, enable_progress_bar=False, logger=True)
    trainer.fit(model=LitAutoEncoder(), train_dataloaders=DataLoader(images, batch_size=32, shuffle=True))
