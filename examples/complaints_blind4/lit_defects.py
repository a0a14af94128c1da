"""Lightning module that classifies surface defects from sensor vectors."""
import logging
import time
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.functional.classification import multiclass_auroc

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
CLASSES, FEATURES = 12, 96


class DefectClassifier(L.LightningModule):
    def __init__(self, hidden=256, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, CLASSES))
        self.validation_step_outputs = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        self.validation_step_outputs.append((logits.softmax(-1), y))

    def on_validation_epoch_end(self):
        if self.trainer.sanity_checking:
            return
        probs = torch.cat([p for p, _ in self.validation_step_outputs])
        targets = torch.cat([t for _, t in self.validation_step_outputs])
        auroc = multiclass_auroc(probs, targets, num_classes=CLASSES)
        print(f"epoch {self.current_epoch} auroc {auroc:.4f}")

    def on_train_epoch_start(self):
        now = time.time()
        if self.current_epoch:
            print(f"  epoch took {now - self.epoch_began:.2f}s")
        self.epoch_began = now

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def make_loader(n, batch_size, shuffle):
    x = torch.randn(n, FEATURES)
    y = (x[:, :CLASSES] + 0.5 * torch.randn(n, CLASSES)).argmax(1)
    return DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=shuffle)


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    begin = time.time()
    trainer = L.Trainer(max_epochs=16, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(DefectClassifier(), make_loader(4000, 128, True), make_loader(8000, 256, False))
    print(f"total {time.time() - begin:.1f}s")
