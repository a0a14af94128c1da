"""Fine-tune a small BERT on short customer messages (intent classification) with the Hugging Face Trainer."""
import random
import tempfile

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, Trainer,
                          TrainingArguments)

INTENTS = ["refund", "delivery", "password", "invoice", "cancel", "complaint"]
FILLER = ("hello please i my the your order account yesterday again still not working can you help me with "
          "this because was told that it would be here by now thank regards team number email phone").split()
CUES = {
    "refund": ["refund", "money", "back"], "delivery": ["parcel", "courier", "late"],
    "password": ["password", "login", "reset"], "invoice": ["invoice", "tax", "billing"],
    "cancel": ["cancel", "subscription", "stop"], "complaint": ["rude", "terrible", "unacceptable"],
}


def make_messages(n, seed):
    rnd = random.Random(seed)
    rows = []
    for _ in range(n):
        label = rnd.randrange(len(INTENTS))
        words = rnd.choices(FILLER, k=rnd.randint(8, 40))
        for cue in rnd.sample(CUES[INTENTS[label]], 2):
            words.insert(rnd.randrange(len(words)), cue)
        rows.append((" ".join(words), label))
    return rows


def make_tokenizer():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({*FILLER, *sum(CUES.values(), [])})]
    tok = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tok.normalizer = normalizers.Lowercase()
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]",
                                   cls_token="[CLS]", sep_token="[SEP]", model_max_length=192)


class Messages(Dataset):
    def __init__(self, rows, tokenizer):
        texts = [text for text, _ in rows]
        self.enc = tokenizer(texts, truncation=True, padding="max_length", max_length=192)
        self.labels = [label for _, label in rows]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        item = {k: torch.tensor(v[i]) for k, v in self.enc.items() if k != "token_type_ids"}
        item["labels"] = torch.tensor(self.labels[i])
        return item


def main():
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    train = Messages(make_messages(16 * 32, 0), tokenizer)
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
                        intermediate_size=512, max_position_embeddings=192, num_labels=len(INTENTS))
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=16,
        num_train_epochs=1,
        learning_rate=5e-4,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=args, train_dataset=train, processing_class=tokenizer)
    print(trainer.train().metrics)


if __name__ == "__main__":
    main()
