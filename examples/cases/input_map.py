"""Pictures are decoded and scaled by the loop itself, or by two workers ahead of it."""

import io
import sys

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from transformers import ViTConfig, ViTForImageClassification

SIZE, BATCH, STEPS = 64, 8, 24


class Pictures(Dataset):
    """JPEG files in memory, as they come from a disk that is fast enough."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.files = []
        for _ in range(16):
            file = io.BytesIO()
            Image.fromarray(random.integers(0, 255, (240, 320, 3), dtype=np.uint8)).save(file, "JPEG")
            self.files.append(file.getvalue())

    def __len__(self) -> int:
        return BATCH * STEPS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = Image.open(io.BytesIO(self.files[index % len(self.files)])).convert("RGB").resize((SIZE, SIZE))
        return torch.from_numpy(np.asarray(picture).copy()).permute(2, 0, 1) / 255.0, index % 10


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = ViTConfig(
        hidden_size=96, num_hidden_layers=3, num_attention_heads=3, intermediate_size=192, image_size=SIZE, patch_size=8
    )
    config.num_labels = 10
    model = ViTForImageClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    workers = {"num_workers": 2, "prefetch_factor": 2} if sys.argv[1] == "after" else {}
    for pixels, labels in DataLoader(Pictures(), batch_size=BATCH, **workers):
        optimizer.zero_grad()
        model(pixel_values=pixels, labels=labels).loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
