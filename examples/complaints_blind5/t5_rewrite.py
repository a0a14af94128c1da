import time

import torch
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(0)

config = T5Config(
    vocab_size=2000, d_model=192, d_kv=32, d_ff=512, num_layers=4, num_decoder_layers=2, num_heads=6,
    dropout_rate=0.0, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
)
model = T5ForConditionalGeneration(config).eval()


def queries(n_batches, batch_size=16, length=96):
    generator = torch.Generator().manual_seed(1)
    for _ in range(n_batches):
        input_ids = torch.randint(2, config.vocab_size, (batch_size, length), generator=generator)
        lengths = torch.randint(length // 2, length + 1, (batch_size, 1), generator=generator)
        mask = (torch.arange(length)[None] < lengths).long()
        yield input_ids * mask, mask


@torch.no_grad()
def rewrite(input_ids, attention_mask, max_new_tokens=24, temperature=0.8, top_k=50):
    batch_size = input_ids.shape[0]
    tokens = torch.full((batch_size, 1), config.decoder_start_token_id)
    finished = torch.zeros(batch_size, dtype=torch.bool)
    past = None
    log_probs = torch.zeros(batch_size)
    for _ in range(max_new_tokens):
        out = model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=tokens[:, -1:],
            past_key_values=past,
            use_cache=True,
        )
        past = out.past_key_values
        logits = out.logits[:, -1] / temperature
        values, indices = logits.topk(top_k, dim=-1)
        probs = values.softmax(dim=-1)
        choice = torch.multinomial(probs, 1)
        next_token = indices.gather(1, choice).squeeze(1)
        log_probs += probs.gather(1, choice).squeeze(1).log() * ~finished
        next_token = next_token.masked_fill(finished, config.pad_token_id)
        finished |= next_token == config.eos_token_id
        tokens = torch.cat([tokens, next_token[:, None]], dim=1)
        if finished.all():
            break
    return tokens, log_probs


def main():
    n_tokens, start = 0, time.time()
    for i, (input_ids, mask) in enumerate(queries(4)):
        tokens, log_probs = rewrite(input_ids, mask)
        n_tokens += tokens.numel()
        print(f"batch {i}: {n_tokens / (time.time() - start):.0f} tokens/s, log p {log_probs.mean().item():.2f}")
    print(f"total {time.time() - start:.2f}s")


if __name__ == "__main__":
    main()
