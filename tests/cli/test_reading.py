"""Who waits at a terminal for a trace to be read is told so at once; pipes and small files are not bothered."""

from __future__ import annotations

import sys

import pytest

from leadline.cli.errors import CommandError
from leadline.cli.files import open_profile


@pytest.mark.parametrize(
    ("terminal", "length", "said"), [(True, 2 << 20, True), (False, 2 << 20, False), (True, 100, False)]
)
def test_a_large_trace_says_that_it_is_read(tmp_path, monkeypatch, capsys, terminal, length, said):
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"traceEvents": [' + b" " * length)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with pytest.raises(CommandError):
        open_profile(str(path))
    assert (f"leadline: reading {path}, 2.00 MiB ..." in capsys.readouterr().err) == said
