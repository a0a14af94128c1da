import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import RobertaConfig, RobertaForSequenceClassification, Trainer, TrainingArguments, set_seed


class TicketDataset(Dataset):
    def __init__(self, n, seq_len=96, vocab_size=4000, n_labels=6, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, n_labels, n)
        ids = rng.integers(10, vocab_size, (n, seq_len))
        ids[:, 0] = 0
        ids[:, 5:10] = 10 + self.labels[:, None]
        ids[:, -1] = 2
        self.input_ids = torch.from_numpy(ids)
        self.attention_mask = torch.ones_like(self.input_ids)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {
            "input_ids": self.input_ids[i],
            "attention_mask": self.attention_mask[i],
            "labels": int(self.labels[i]),
        }


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((logits.argmax(-1) == labels).mean())}


def main():
    set_seed(11)
    config = RobertaConfig(
        vocab_size=4000,
        hidden_size=192,
        num_hidden_layers=6,
        num_attention_heads=6,
        intermediate_size=768,
        max_position_embeddings=130,
        num_labels=6,
    )
    model = RobertaForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as output_dir:
        args = TrainingArguments(
            output_dir=output_dir,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=32,
            max_steps=16,
            learning_rate=5e-5,
            warmup_steps=5,
            weight_decay=0.01,
            gradient_checkpointing=True,
            logging_steps=8,
            save_strategy="no",
            eval_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=TicketDataset(512),
            eval_dataset=TicketDataset(64, seed=1),
            compute_metrics=compute_metrics,
        )
        result = trainer.train()
        print("seconds per step", round(result.metrics["train_runtime"] / args.max_steps, 3))
        print(trainer.evaluate())


if __name__ == "__main__":
    main()
