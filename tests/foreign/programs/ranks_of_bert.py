"""Two ranks over gloo, started by torchrun: a BERT in DistributedDataParallel; at inference the scores are gathered."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from transformers import BertConfig, BertForSequenceClassification


def model() -> BertForSequenceClassification:
    config = BertConfig(
        vocab_size=500, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128
    )
    return BertForSequenceClassification(config)


def batches() -> DataLoader:
    data = TensorDataset(torch.randint(0, 500, (96, 16)), torch.randint(0, 2, (96,)))
    return DataLoader(data, batch_size=8, sampler=DistributedSampler(data))


def train() -> None:
    dist.init_process_group("gloo")
    net = DistributedDataParallel(model().train())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for tokens, labels in batches():
        optimizer.zero_grad()
        net(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()
    dist.destroy_process_group()


@torch.no_grad()
def infer() -> None:
    dist.init_process_group("gloo")
    net = model().eval()
    for tokens, _ in batches():
        scores = net(input_ids=tokens).logits
        every = [torch.empty_like(scores) for _ in range(dist.get_world_size())]
        dist.all_gather(every, scores)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
