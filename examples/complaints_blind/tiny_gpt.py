# fmt: off
import time
import torch
from transformers import GPT2Config, GPT2LMHeadModel


def load_tokens(n=200_000, vocab=2048):
    g = torch.Generator().manual_seed(11)
    return torch.randint(0, vocab, (n,), generator=g)


def get_batch(tokens, batch, length):
    starts = torch.randint(0, len(tokens) - length, (batch,))
    return tokens[starts[:, None] + torch.arange(length)]


def build():
    config = GPT2Config(vocab_size=2048, n_positions=128, n_embd=128, n_layer=3, n_head=4,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                        bos_token_id=0, eos_token_id=0, use_cache=False)
    return GPT2LMHeadModel(config)


def main():
    torch.manual_seed(0)
    tokens = load_tokens()
    model = build()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=80)
    total = torch.zeros(())
    t0 = time.perf_counter()
    for step in range(1, 81):
        ids = get_batch(tokens, 6, 96)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        total += loss.detach()
        if step % 20 == 0:
            print(f"step {step} loss {total.item() / 20:.3f} {(time.perf_counter() - t0) / step * 1e3:.0f} ms/step")
            total.zero_()


if __name__ == "__main__":
    main()
# ruff: noqa
