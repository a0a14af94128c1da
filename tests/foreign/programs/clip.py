"""CLIP of transformers: contrastive training on pairs of images and texts; embeddings of each at inference."""

import sys

import torch
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig


def model() -> CLIPModel:
    text = CLIPTextConfig(
        vocab_size=300, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=20, eos_token_id=2, bos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    image = CLIPVisionConfig(
        hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8
    )
    return CLIPModel(CLIPConfig(text_config=text.to_dict(), vision_config=image.to_dict(), projection_dim=32))


def batch(size: int) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(3, 300, (size, 16)), "pixel_values": torch.randn(size, 3, 32, 32)}


def train() -> None:
    net = model().train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    for _ in range(12):
        loss = net(**batch(16), return_loss=True).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()


@torch.inference_mode()
def infer() -> None:
    net = model().eval()
    for _ in range(8):
        pairs = batch(8)
        net(**pairs).logits_per_image.softmax(dim=1)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
