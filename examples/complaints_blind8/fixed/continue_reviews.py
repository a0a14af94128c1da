"""Continue product reviews with a small GPT-2, never writing a word of the shop's block list."""
import argparse
import random
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LogitsProcessor, LogitsProcessorList

VOCAB = 6000
EOS = 0


class BlockList(LogitsProcessor):
    """Give blocked words no chance."""

    def __init__(self, blocked):
        self.blocked = torch.tensor(blocked)

    def __call__(self, input_ids, scores):
        return scores.index_fill(1, self.blocked, -float("inf"))


def build_model():
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=256,
        n_embd=320,
        n_layer=6,
        n_head=8,
        bos_token_id=EOS,
        eos_token_id=None,
        pad_token_id=EOS,
    )
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config)
    return model.eval()


def load_prompts(count, length, rng):
    return [[rng.randrange(1, VOCAB) for _ in range(length)] for _ in range(count)]


def batches(prompts, size):
    for start in range(0, len(prompts), size):
        yield torch.tensor(prompts[start : start + size])


def diversity(tokens):
    pairs = {(a, b) for row in tokens.tolist() for a, b in zip(row, row[1:])}
    return len(pairs) / max(1, tokens.numel() - tokens.shape[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=12)
    args = parser.parse_args()

    rng = random.Random(1)
    model = build_model()
    blocked = sorted(rng.sample(range(1, VOCAB), 900))
    prompts = load_prompts(args.batches * args.batch_size, 48, rng)

    done = 0
    started = time.perf_counter()
    for number, prompt in enumerate(batches(prompts, args.batch_size)):
        with torch.inference_mode():
            output = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=args.new_tokens,
                do_sample=True,
                top_k=50,
                logits_processor=LogitsProcessorList([BlockList(blocked)]),
            )
        new = output[:, prompt.shape[1] :]
        done += new.numel()
        if number % 10 == 0:
            print(f"batch {number}: distinct pairs {diversity(new):.2f}")
    seconds = time.perf_counter() - started
    print(f"{done} tokens in {seconds:.1f} s, {done / seconds:.0f} tokens/s")


if __name__ == "__main__":
    main()
