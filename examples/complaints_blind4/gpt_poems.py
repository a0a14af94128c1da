"""Sample poems from a small GPT-2 with top-k and a repetition penalty."""
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(7)

config = GPT2Config(vocab_size=6000, n_positions=512, n_embd=256, n_layer=6, n_head=8)
model = GPT2LMHeadModel(config)
model.eval()


def penalise(logits, generated, penalty):
    score = torch.gather(logits, 1, generated)
    score = torch.where(score < 0, score * penalty, score / penalty)
    return logits.scatter(1, generated, score)


def top_k_filter(logits, k):
    values, _ = torch.topk(logits, k)
    return logits.masked_fill(logits < values[:, -1:], float("-inf"))


@torch.no_grad()
def sample(prompt_ids, max_new_tokens=180, temperature=0.9, top_k=50, penalty=1.2):
    generated = prompt_ids
    for i in range(max_new_tokens):
        outputs = model(input_ids=generated)
        next_token_logits = outputs.logits[:, -1, :] / temperature
        next_token_logits = penalise(next_token_logits, generated, penalty)
        probs = torch.softmax(top_k_filter(next_token_logits, top_k), dim=-1)
        next_token = torch.multinomial(probs, num_samples=1)
        generated = torch.cat([generated, next_token], dim=1)
        if i % 30 == 0:
            print(f"token {i}: {time.time() - clock:.2f}s", flush=True)
    return generated


prompts = torch.randint(0, config.vocab_size, (4, 48))
clock = time.time()
out = sample(prompts)
elapsed = time.time() - clock
print(f"{out.shape[0]} poems, {180 / elapsed:.1f} tokens/s per poem, {elapsed / 180 * 1e3:.1f} ms per token")
