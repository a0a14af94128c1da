import time

import torch
from transformers import BertConfig, BertForMaskedLM, get_linear_schedule_with_warmup

VOCAB, SEQ_LEN, BATCH = 3000, 128, 16
PAD, CLS, SEP, MASK = 0, 1, 2, 3


def corpus(n_docs):
    g = torch.Generator().manual_seed(0)
    steps = torch.randint(1, 4, (n_docs, SEQ_LEN), generator=g)
    tokens = 4 + (torch.randint(0, VOCAB - 4, (n_docs, 1), generator=g) + steps.cumsum(1)) % (VOCAB - 4)
    tokens[:, 0], tokens[:, -1] = CLS, SEP
    return tokens


def mask_tokens(inputs, mlm_probability=0.15):
    labels = inputs.clone()
    special = inputs < 4
    masked = torch.bernoulli(torch.full(labels.shape, mlm_probability).masked_fill_(special, 0.0)).bool()
    labels[~masked] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & masked
    inputs = inputs.masked_fill(replaced, MASK)
    randomized = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & masked & ~replaced
    inputs = torch.where(randomized, torch.randint_like(inputs, 4, VOCAB), inputs)
    return inputs, labels


def main():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCAB, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=1024, max_position_embeddings=SEQ_LEN, pad_token_id=PAD,
    )
    model = BertForMaskedLM(config)
    model.train()
    decay = [p for p in model.parameters() if p.ndim > 1]
    no_decay = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-4, fused=True
    )
    num_steps = 24
    scheduler = get_linear_schedule_with_warmup(optimizer, 4, num_steps)
    docs = corpus(num_steps * BATCH)
    docs = docs[torch.randperm(len(docs))]
    running, start = torch.zeros(()), time.time()
    for step, batch in enumerate(docs.split(BATCH), 1):
        input_ids, labels = mask_tokens(batch)
        loss = model(input_ids=input_ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        running += loss.detach()
        if step % 6 == 0:
            took = time.time() - start
            print(f"step {step:3d} loss {running.item() / 6:.3f} {6 * BATCH * SEQ_LEN / took:.0f} tokens/s")
            running.zero_()
            start = time.time()


if __name__ == "__main__":
    main()
