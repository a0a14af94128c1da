"""Peaks of memory are of one process and device each: they are never added to one that was reached at another moment."""

import pytest

from leadline.compare import diff
from leadline.convert import export, exporter_for
from leadline.profiles.build import build

pytestmark = pytest.mark.untrue(reason="only peaks are drawn, without what was allocated")


def test_peaks_of_processes_are_not_added_up() -> None:
    tree = build("""
    process a | pid=1
      thread main
        operator x | peak_live_bytes=30
          operator y | peak_live_bytes=5
    process b | pid=2
      thread main
        operator x | peak_live_bytes=20
    """).tree
    processes = tree.find(kind="process")
    assert [node.inclusive("peak_live_bytes").sum for node in processes] == [35, 20]
    assert [node.inclusive("peak_live_bytes", device=-1).sum for node in processes] == [35, 20]
    assert tree.root.inclusive("peak_live_bytes").sum == 35
    assert tree.root.inclusive("peak_live_bytes", device=-1).sum == 35


def test_peaks_of_devices_are_not_added_up() -> None:
    tree = build("""
    process a | pid=1
      thread main
        operator x | peak_live_bytes=30 peak_live_bytes@0=100
        operator y | peak_live_bytes=80 peak_live_bytes@0=1
    """).tree
    x, y = tree.find(kind="operator")
    assert [node.exclusive("peak_live_bytes").sum for node in (x, y)] == [100, 80]
    assert tree.root.inclusive("peak_live_bytes", device=0).sum == 101
    assert tree.root.inclusive("peak_live_bytes", device=-1).sum == 110
    assert tree.root.inclusive("peak_live_bytes").sum == 110


TWO = """
    process a | pid=1
      thread main
        operator x | peak_live_bytes=30 peak_live_bytes@0=10 time=1
          operator y | peak_live_bytes=5
    process b | pid=2
      thread main
        operator z | peak_live_bytes=20 peak_live_bytes@0=50 time=2
    """


def test_a_picture_shows_the_largest_peak_alone() -> None:
    tree = build(TWO).tree
    names = [node.name for node in tree.find(kind="operator")]
    rows = [node.row for node in tree.find(kind="operator")]
    assert dict(zip(names, tree.drawn("peak_live_bytes")[rows].tolist(), strict=True)) == {"x": 0, "y": 0, "z": 50}
    assert dict(zip(names, tree.drawn("time")[rows].tolist(), strict=True)) == {"x": 1, "y": 0, "z": 2}


def test_other_formats_and_comparisons_add_up_no_peaks() -> None:
    profile = build(TWO)
    text = export(profile, exporter_for("x.collapsed"), "peak_live_bytes").decode()
    assert sum(int(line.rpartition(" ")[2]) for line in text.splitlines()) == 50
    assert diff([profile], [profile]).peak == (50, 50)


def test_other_metrics_go_on_adding_up() -> None:
    tree = build("""
    process a | pid=1
      thread main
        operator x | time=30 alloc_bytes=4
    process b | pid=2
      thread main
        operator x | time=20 alloc_bytes=5
    """).tree
    assert tree.root.inclusive("time").sum == 50
    assert tree.root.inclusive("alloc_bytes").sum == 9
    assert tree.root.inclusive("peak_live_bytes").count == 0
