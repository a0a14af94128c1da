"""Greenlets that switch inside their regions: each keeps its own work."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import leadline

torch = pytest.importorskip("torch")
greenlet = pytest.importorskip("greenlet")


def test_work_is_booked_in_the_region_of_its_own_greenlet(tmp_path: Path) -> None:
    value = torch.ones(4, 4)

    def work(name: str) -> None:
        with leadline.region(name):
            for _ in range(50):
                torch.mm(value, value)
                others[name].switch()

    first, second = greenlet.greenlet(lambda: work("A")), greenlet.greenlet(lambda: work("B"))
    others = {"A": second, "B": first}
    with leadline.profile(tmp_path / "out.leadline", quiet=True):
        first.switch()
    counted: Counter[tuple[str, ...]] = Counter()
    for node in leadline.open(tmp_path / "out.leadline").tree.find(kind="operator"):
        if node.name == "aten::mm":
            regions = tuple(above.name for above in node.path() if above.kind == "region")
            counted[regions] += node.exclusive("call_time").count
    assert counted == {("A",): 50, ("B",): 50}
