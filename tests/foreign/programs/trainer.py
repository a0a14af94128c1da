"""transformers' own Trainer over a GPT-2: worker processes, evaluation, a checkpoint; then Trainer.predict."""

import sys
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Text(Dataset):
    def __init__(self, size: int) -> None:
        self.tokens = torch.randint(0, 200, (size, 24))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def trainer(folder: str) -> Trainer:
    net = GPT2LMHeadModel(GPT2Config(vocab_size=200, n_positions=32, n_embd=48, n_layer=2, n_head=4))
    options = TrainingArguments(
        folder, per_device_train_batch_size=8, num_train_epochs=1, dataloader_num_workers=2, report_to=[], use_cpu=True,
        eval_strategy="epoch", save_strategy="epoch", logging_steps=2, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    return Trainer(net, options, train_dataset=Text(48), eval_dataset=Text(16))


def train() -> None:
    with tempfile.TemporaryDirectory() as folder:
        trainer(folder).train()


def infer() -> None:
    with tempfile.TemporaryDirectory() as folder:
        trainer(folder).predict(Text(32))


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
