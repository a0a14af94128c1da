"""A Whisper of transformers: convolutions over sound, a decoder with cross attention, bfloat16 in training."""

import sys

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration


def model() -> WhisperForConditionalGeneration:
    config = WhisperConfig(
        vocab_size=300, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_source_positions=100,
        max_target_positions=40, num_mel_bins=20, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    return WhisperForConditionalGeneration(config)


def train() -> None:
    net = model().train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for _ in range(6):
        sound, text = torch.randn(2, 20, 200), torch.randint(3, 300, (2, 20))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = net(input_features=sound, labels=text).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


@torch.inference_mode()
def infer() -> None:
    net = model().eval()
    print(net.generate(torch.randn(2, 20, 200), max_new_tokens=10, do_sample=False).shape)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
