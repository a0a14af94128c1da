"""`leadline clock-sync` over the loopback, and into a time namespace whose clock is 1000 s ahead."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from leadline.cli.main import main


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def serving(port: int, *before: str) -> Iterator[None]:
    command = [*before, sys.executable, "-m", "leadline", "clock-sync", "--serve", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield
        finally:
            server.kill()  # `unshare` ignores other signals


def compared(port: int, capsys) -> dict[str, object]:
    """As soon as the server answers: starting a Python takes its time."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        code = main(["clock-sync", f"127.0.0.1:{port}", "--pairs", "100", "--seconds", "0.5", "--json"])
        told = capsys.readouterr()
        if code == 0:
            return json.loads(told.out)
        assert "no answer" in told.err
    pytest.fail("the server never answered")


def test_one_machine_is_no_distance_from_itself(capsys) -> None:
    port = free_port()
    with serving(port):
        told = compared(port, capsys)
    assert abs(told["theirs_minus_ours_ns"]) <= told["half_width_ns"] + 1
    assert 0 < told["half_width_ns"] < 1_000_000_000  # of a round trip on a machine that may be busy
    assert told["pairs"] + 2 * told["unanswered"] == 200


def test_a_clock_that_is_a_thousand_seconds_ahead_is_found(capsys) -> None:
    ahead = ("unshare", "--time", "--monotonic", "1000", "--fork", "--kill-child")
    if shutil.which("unshare") is None or subprocess.run([*ahead, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets no user make a time namespace")
    port = free_port()
    with serving(port, *ahead):
        told = compared(port, capsys)
    assert abs(told["theirs_minus_ours_ns"] - 1000 * 10**9) <= told["half_width_ns"] + 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nonsense"], "write HOST:PORT"),
        (["127.0.0.1:99999"], "write HOST:PORT"),
        (["127.0.0.1:7400", "--pairs", "1"], "at least two messages"),
    ],
)
def test_what_cannot_be_asked_is_told(words: list[str], sentence: str, capsys) -> None:
    assert main(["clock-sync", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_nobody_there(capsys) -> None:
    assert main(["clock-sync", f"127.0.0.1:{free_port()}"]) == 2
    assert "no answer" in capsys.readouterr().err
