"""Write product texts with a small decoder of transformers; blocked words must never occur in them."""
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

PRODUCTS, BATCH, PROMPT, NEW, VOCAB = 6, 16, 32, 48, 16000


def make_model():
    config = GPT2Config(vocab_size=VOCAB, n_positions=256, n_embd=128, n_layer=3, n_head=4,
                        bos_token_id=0, eos_token_id=1, pad_token_id=2)
    return GPT2LMHeadModel(config).eval()


class Blocklist:
    """The tokens that a text may hold: all but those of competitors' brands."""

    def __init__(self, vocab, blocked):
        blocked = set(blocked)
        self.allowed = torch.tensor([token for token in range(vocab) if token not in blocked])

    def __call__(self, batch_id, input_ids):
        return self.allowed


@torch.inference_mode()
def write(model, prompts, rule):
    out = model.generate(
        input_ids=prompts,
        attention_mask=torch.ones_like(prompts),
        max_new_tokens=NEW,
        min_new_tokens=NEW,
        do_sample=False,
        prefix_allowed_tokens_fn=rule,
    )
    return out[:, prompts.shape[1]:]


def main():
    torch.manual_seed(0)
    model = make_model()
    g = torch.Generator().manual_seed(7)
    prompts = torch.randint(3, VOCAB, (PRODUCTS * BATCH, PROMPT), generator=g)
    rule = Blocklist(VOCAB, torch.randint(3, VOCAB, (400,), generator=g).tolist())
    start, tokens = time.perf_counter(), 0
    for i in range(PRODUCTS):
        out = write(model, prompts[i * BATCH:(i + 1) * BATCH], rule)
        tokens += out.shape[1]
        if (i + 1) % 2 == 0:
            print(f"batch {i + 1}: {out[0, :5].tolist()}")
    print(f"{(time.perf_counter() - start) / tokens * 1e3:.2f} ms a token")


if __name__ == "__main__":
    main()
