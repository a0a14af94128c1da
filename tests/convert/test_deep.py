"""One path of many thousand frames: formats that share frames write it, the others refuse instead of filling the memory."""

from __future__ import annotations

import pytest

from leadline.cli.main import main
from leadline.convert.request import TooLargeError
from leadline.profiles import Profile, write_profile
from leadline.profiles.builder import ProfileBuilder

REPEATING = ("collapsed", "pprof")
SHARING = ("speedscope", "cpuprofile", "hatchet")


@pytest.fixture(scope="module")
def deep() -> Profile:
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p"), "main"))
    frames = [builder.frame("python", f"recursive_{i}", file="train.py", line=i + 1) for i in range(50)]
    for i in range(10_000):
        node = builder.child(node, frames[i % 50])
        builder.add(node, "time", 10)
    return builder.profile()


@pytest.mark.parametrize("name", REPEATING)
def test_a_format_that_repeats_paths_refuses(exported, deep, name, tmp_path, capsys):
    with pytest.raises(TooLargeError, match="too deep"):
        exported(name, deep)
    write_profile(tmp_path / "deep.leadline", deep)
    assert main(["export", str(tmp_path / "deep.leadline"), "--format", name, "-o", str(tmp_path / "out")]) == 2
    assert "export speedscope" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", SHARING)
def test_a_format_that_shares_frames_holds_it(exported, deep, name):
    assert b"recursive_49" in exported(name, deep)
