"""Compressed files that were cut off or changed are one sentence, wherever a file's format is looked for."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from leadline.cli.main import main

RECORDED = Path(__file__).parent / "recorded"


def packed(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def cut(data: bytes, share: float) -> bytes:
    return data[: max(int(len(data) * share), 20)]


def changed(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes(255 - one for one in data[middle : middle + 64]) + data[middle + 64 :]


def archive() -> bytes:
    """A tar of a trace, cut off."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as tar:
        member = tarfile.TarInfo("rank0.json")
        data = b'{"traceEvents": [' + b" " * 100_000 + b"]}"
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return cut(target.getvalue(), 0.5)


FILES = {
    "cut.xplane.pb.gz": cut(packed("jax-0.10.2.xplane.pb.gz"), 0.5),
    "short.xplane.pb.gz": cut(packed("jax-0.10.2.xplane.pb.gz"), 0),
    "tail.xplane.pb.gz": packed("jax-0.10.2.xplane.pb.gz")[:-4],
    "changed.xplane.pb.gz": changed(packed("jax-0.10.2.xplane.pb.gz")),
    "kernel.dat.gz": cut(packed("trace-cmd.v7.dat.gz"), 0.5),
    "empty.gz": b"\x1f\x8b",
    "header.gz": gzip.compress(b"anything")[:12],
    "ranks.tar.gz": archive(),
}


@pytest.mark.parametrize("verb", ["report", "whatif", "import"])
@pytest.mark.parametrize("name", list(FILES))
def test_a_compressed_file_that_is_damaged_is_one_sentence(
    tmp_path: Path, name: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name])
    more = ["-o", str(tmp_path / "out")] if verb == "import" else []
    assert main([verb, str(path), *more]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1
    assert name in told.err
    assert "Traceback" not in told.err
