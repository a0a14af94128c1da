"""`leadline demo` leaves a profile and a page, and the program it profiles is what it claims to be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import leadline
from leadline.demo.text import GRAMMAR, make_text

torch = pytest.importorskip("torch", reason="torch is not installed, and the demo trains a PyTorch model")


def test_the_text_is_the_same_every_time_and_stays_in_the_grammar() -> None:
    text = make_text(20_000, seed=3)
    assert text == make_text(20_000, seed=3)
    assert text != make_text(20_000, seed=4)
    assert 20_000 <= len(text) < 20_200
    words = {
        word.lower() for productions in GRAMMAR.values() for one in productions for word in re.findall(r"[\w'-]+", one)
    }
    assert {word.lower() for word in re.findall(r"[\w'-]+", text)} <= words
    assert not re.search(r"[A-Z]{2}", text), "a symbol of the grammar was left in the text"


def test_the_model_sees_the_past_only_and_learns() -> None:
    from leadline.demo.gpt import GPT, GPTConfig

    torch.manual_seed(0)
    model = GPT(GPTConfig(vocabulary=11, context=8, layers=2, heads=2, width=16, dropout=0.0))
    tokens = torch.randint(11, (3, 8))
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    assert before.shape == (3, 8, 11)
    assert torch.allclose(before[:, :5], after[:, :5], atol=1e-6)
    assert not torch.allclose(before[:, 5:], after[:, 5:])

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    first = model.loss(tokens, tokens).item()
    for _ in range(30):
        loss = model.loss(tokens, tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert model.loss(tokens, tokens).item() < first / 2


def test_sizes_that_do_not_fit_are_refused() -> None:
    from leadline.demo.gpt import GPTConfig

    with pytest.raises(ValueError, match="not a multiple"):
        GPTConfig(vocabulary=11, heads=3, width=16)


def test_leadline_demo(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    command = [sys.executable, "-m", "leadline.cli.main", "demo", "--steps", "3"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "hottest" in done.stdout + done.stderr
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert 'id="profile-0"' in page
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=.https?:", page), "the page must not need the network"

    tree = leadline.open(tmp_path / "demo.leadline").tree
    modules = {node.name for node in tree.find(kind="module")}
    assert {"model", "model.transformer", "model.transformer.h.0.attn", "model.transformer.h.3.mlp.fc"} <= modules
    assert {"backward", "optimizer", "zero_grad"} <= {node.name for node in tree.find(kind="phase")}
    attention = list(tree.find(kind="operator", name="aten::scaled_dot_product_attention"))
    training = [node for node in attention if any(frame.name.endswith("train") for frame in node.path())]
    assert sum(node.exclusive("call_time").count for node in training) >= 3 * 4
    assert any(frame.file.endswith("gpt.py") and frame.line for node in training for frame in node.path())
