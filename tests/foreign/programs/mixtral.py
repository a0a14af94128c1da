"""A mixture of experts of transformers; LoRA of peft in training under accelerate; generation by sampling."""

import sys

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader
from transformers import MixtralConfig, MixtralForCausalLM


def model() -> MixtralForCausalLM:
    config = MixtralConfig(
        vocab_size=300, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=4, max_position_embeddings=64,
    )  # fmt: skip
    return MixtralForCausalLM(config)


def train() -> None:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = get_peft_model(model(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    loader = DataLoader(torch.randint(0, 300, (48, 16)), batch_size=4)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    net.train()
    for tokens in loader:
        with accelerator.accumulate(net):
            accelerator.backward(net(input_ids=tokens, labels=tokens).loss)
            optimizer.step()
            optimizer.zero_grad()


def infer() -> None:
    net = model().eval()
    net.generate(torch.randint(0, 300, (2, 8)), max_new_tokens=8, do_sample=True, pad_token_id=0)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
