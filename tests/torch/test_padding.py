"""What of a batch of token numbers is padding, counted where an embedding looks them up."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def padding(result) -> dict[str, int]:
    return result.meta["available"]["torch"].get("padding", {})


@pytest.mark.parametrize("dtype", [torch.long, torch.int])
def test_padding_of_looked_up_numbers_is_counted(measure, dtype):
    def run() -> None:
        table = nn.Embedding(100, 16)
        ids = torch.zeros(4, 20, dtype=dtype)
        ids[:, :5] = torch.arange(1, 6)
        ids[1, 5:10] = torch.arange(6, 11)
        for _ in range(3):
            table(ids)

    assert padding(measure(run, shapes=True)) == {"batches": 3, "all": 3 * 687_500, "common": 3 * 500_000}


def test_other_numbers_have_none_and_without_shapes_nobody_looks(measure):
    def run() -> None:
        table = nn.Embedding(100, 16)
        for _ in range(3):
            table(torch.randperm(80).view(4, 20))
            table(torch.zeros(7, dtype=torch.long))

    assert padding(measure(run, shapes=True)) == {"batches": 3, "all": 0, "common": 0}
    assert padding(measure(run)) == {}


def test_positions_and_types_of_tokens_are_no_batches(measure):
    """As BERT looks them up: of 20 numbers of a row 15 are padding, whatever the other two tables are asked for."""

    def run() -> None:
        words, positions, types = nn.Embedding(100, 16), nn.Embedding(500, 16), nn.Embedding(2, 16)
        ids = torch.zeros(4, 20, dtype=torch.long)
        ids[:, :5] = torch.tensor([2, 9, 4, 7, 3])
        segments = torch.zeros(4, 20, dtype=torch.long)
        segments[:, 2:5] = 1
        for _ in range(3):
            types(segments)
            words(ids) + positions(torch.arange(20)[None]) + types(torch.zeros(4, 20, dtype=torch.long))

    assert padding(measure(run, shapes=True)) == {"batches": 3, "all": 3 * 750_000, "common": 3 * 750_000}
