"""A Wav2Vec2 of transformers: speech recognition with the CTC loss, masks made by NumPy, weight normalisation."""

import sys

import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC


def model() -> Wav2Vec2ForCTC:
    config = Wav2Vec2Config(
        vocab_size=20, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        conv_dim=(24, 24, 24), conv_stride=(5, 4, 2), conv_kernel=(10, 4, 2), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4, mask_time_prob=0.1, mask_time_length=4, layerdrop=0.0,
    )  # fmt: skip
    return Wav2Vec2ForCTC(config)


def train() -> None:
    net = model().train()
    net.freeze_feature_encoder()
    optimizer = torch.optim.Adam((one for one in net.parameters() if one.requires_grad), lr=1e-3)
    for _ in range(6):
        loss = net(torch.randn(2, 4000), labels=torch.randint(1, 20, (2, 10))).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def infer() -> None:
    net = model().eval()
    for _ in range(6):
        print(net(torch.randn(1, 4000)).logits.argmax(-1)[0, :5].tolist())


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
