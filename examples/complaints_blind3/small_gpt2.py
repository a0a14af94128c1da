"""GPT-2 of a small size from its configuration, trained on packed blocks."""
import time

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

BLOCK, VOCAB = 128, 2000


class Blocks(Dataset):
    def __init__(self, tokens):
        self.tokens = tokens

    def __len__(self):
        return (len(self.tokens) - 1) // BLOCK

    def __getitem__(self, index):
        return self.tokens[index * BLOCK:(index + 1) * BLOCK]


def make_tokens(count):
    g = torch.Generator().manual_seed(0)
    return (torch.rand(count, generator=g).pow(2) * VOCAB).long()


def main():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=VOCAB, n_positions=BLOCK, n_embd=192, n_layer=4, n_head=6,
                        bos_token_id=0, eos_token_id=0, use_cache=False,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(config)
    loader = DataLoader(Blocks(make_tokens(BLOCK * 240 + 1)), batch_size=8, shuffle=True, drop_last=True)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=6e-4)
    scheduler = get_linear_schedule_with_warmup(optimizer, 5, len(loader))
    model.train()
    steps, begin = 0, time.perf_counter()
    for input_ids in loader:
        loss = model(input_ids=input_ids, labels=input_ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        steps += 1
        if steps % 10 == 0:
            print(f"step {steps} loss {loss.item():.3f} lr {scheduler.get_last_lr()[0]:.1e}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
