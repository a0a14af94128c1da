"""A BERT is loaded by reading its file into memory, or by mapping the file. Argument 2 is the file; it is made once."""

import sys
from pathlib import Path

import torch
from transformers import BertConfig, BertModel


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    path = Path(sys.argv[2])
    config = BertConfig(hidden_size=512, num_hidden_layers=8, num_attention_heads=8, intermediate_size=2048)
    if not path.exists():
        torch.save(BertModel(config).state_dict(), path)
        return
    with torch.device("meta"):
        model = BertModel(config)
    state = torch.load(path, mmap=sys.argv[1] == "after")
    model.load_state_dict(state, assign=True)
    model.embeddings.register_buffer("position_ids", torch.arange(512).expand((1, -1)), persistent=False)
    model.embeddings.register_buffer("token_type_ids", torch.zeros(1, 512, dtype=torch.long), persistent=False)
    model.eval()
    with torch.no_grad():
        model(torch.randint(0, 1000, (1, 16)))


if __name__ == "__main__":
    main()
