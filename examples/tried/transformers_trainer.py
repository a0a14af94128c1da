"""A small BERT classifies random sentences with the Trainer of transformers."""

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(Dataset):
    def __init__(self, count=640, length=32):
        generator = torch.Generator().manual_seed(0)
        self.words = torch.randint(5, 2000, (count, length), generator=generator)
        self.labels = (self.words.sum(1) % 2).long()

    def __len__(self):
        return len(self.words)

    def __getitem__(self, place):
        words = self.words[place]
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": self.labels[place]}


config = BertConfig(vocab_size=2000, hidden_size=96, num_hidden_layers=3, num_attention_heads=4, intermediate_size=192)
arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=8, num_train_epochs=1, logging_steps=10, save_steps=50
)
Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=Sentences()).train()
