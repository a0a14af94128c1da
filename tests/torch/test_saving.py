"""Files of a model's state: their time stands at the line that saves, once, whoever writes them."""

from __future__ import annotations

import sys

import pytest

import leadline

torch = pytest.importorskip("torch")


def saved(path):
    """(line, calls, ns) of every phase `saving`."""
    tree = leadline.open(path).tree
    times = tree.exclusive("call_time")
    rows = [row for row in range(len(tree)) if tree.node(row).kind == "phase" and tree.node(row).name == "saving"]
    return [(tree.node(int(tree.parent[row])).line, int(times.count[row]), int(times.sum[row])) for row in rows]


def test_saving_is_booked_at_the_line_and_torch_is_left_as_it_was(tmp_path):
    original = torch.save
    net = torch.nn.Linear(64, 64)
    with leadline.profile(tmp_path / "p.leadline"):
        assert torch.save is torch.serialization.save is not original
        for _ in range(3):
            torch.save(net.state_dict(), tmp_path / "net.pt")
            line = sys._getframe().f_lineno - 1
        with pytest.raises(RuntimeError):
            torch.save(net.state_dict(), tmp_path / "no such folder" / "net.pt")
    assert torch.save is torch.serialization.save is original
    assert torch.load(tmp_path / "net.pt")["weight"].equal(net.weight)
    told = saved(tmp_path / "p.leadline")
    assert [(at, calls) for at, calls, _ in told][:1] == [(line, 3)]
    assert sum(calls for _, calls, _ in told) == 4
    assert all(ns > 0 for *_, ns in told)


def test_one_writer_inside_another_counts_once(tmp_path, monkeypatch):
    safetensors = pytest.importorskip("safetensors.torch")
    with leadline.profile(tmp_path / "p.leadline"):
        safetensors.save_model(torch.nn.Linear(4, 4), str(tmp_path / "net.safetensors"))
    assert sum(calls for _, calls, _ in saved(tmp_path / "p.leadline")) == 1


def test_what_fails_in_here_is_no_error_of_the_program(tmp_path, monkeypatch):
    def broken(*arguments, **named):
        raise TypeError("incompatible")

    monkeypatch.setattr("leadline.capture.providers.torch.saving.book", broken)
    with leadline.profile(tmp_path / "p.leadline"):
        torch.save({"a": 1}, tmp_path / "a.pt")
    assert torch.load(tmp_path / "a.pt") == {"a": 1}
    lost = [one for one in leadline.open(tmp_path / "p.leadline").losses if str(one.kind) == "internal_error"]
    assert [one.count for one in lost] == [1] and "incompatible" in lost[0].detail
