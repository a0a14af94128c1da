# fmt: off
import time
import torch
from transformers import BertConfig, BertForTokenClassification

LABELS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]


class SeqMetrics:
    def __init__(self):
        self.pred, self.gold = [], []

    def update(self, pred, gold):
        self.pred.extend(pred.flatten().tolist())
        self.gold.extend(gold.flatten().tolist())

    def macro_f1(self):
        scores = []
        for k in range(1, len(LABELS)):
            tp = sum(p == k and g == k for p, g in zip(self.pred, self.gold))
            fp = sum(p == k and g != k for p, g in zip(self.pred, self.gold))
            fn = sum(p != k and g == k for p, g in zip(self.pred, self.gold))
            scores.append(2 * tp / max(1, 2 * tp + fp + fn))
        return sum(scores) / len(scores)


def build_model():
    config = BertConfig(vocab_size=3000, hidden_size=96, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=256, max_position_embeddings=64, num_labels=len(LABELS))
    return BertForTokenClassification(config)


def sentences(n, batch=16, length=32):
    g = torch.Generator().manual_seed(5)
    for _ in range(n):
        ids = torch.randint(5, 3000, (batch, length), generator=g)
        yield ids, ids % len(LABELS)


def main():
    torch.manual_seed(0)
    model = build_model()
    model.train()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    metrics = SeqMetrics()
    last = time.perf_counter()
    for step, (ids, gold) in enumerate(sentences(130), 1):
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=gold)
        opt.zero_grad()
        out.loss.backward()
        opt.step()
        metrics.update(out.logits.argmax(-1), gold)
        f1 = metrics.macro_f1()
        if step % 10 == 0:
            now = time.perf_counter()
            print(f"step {step} loss {out.loss.item():.3f} f1 {f1:.3f} {(now - last) / 10 * 1e3:.0f} ms/step")
            last = now


if __name__ == "__main__":
    main()
# ruff: noqa
