"""What a notebook shows of a profile, and the cell magic in IPython's own shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.profiles.build import build


def test_a_profile_shows_itself_without_markup_of_its_names() -> None:
    shown = build("python <script>x @ a.py:1\n  operator aten::mm | time=5000 call_time=5000")._repr_html_()
    assert "aten::mm" in shown
    assert '<iframe sandbox="allow-scripts"' in shown and "srcdoc=" in shown
    assert "<script>" not in shown


def test_the_cell_magic(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    testing = pytest.importorskip("IPython.testing.globalipapp")
    shell = testing.get_ipython() or testing.start_ipython()
    shell.run_line_magic("load_ext", "leadline")
    path = tmp_path / "cell.leadline"
    shown = shell.run_cell_magic(
        "leadline", f"mine -o {path}", "import torch\nx = torch.ones(8, 8)\nfor _ in range(3): y = x @ x\n"
    )
    assert shell.user_ns["y"].shape == (8, 8)
    assert shown is shell.user_ns["mine"]
    assert sum(shown.query("operator:aten::mm")["calls"]) == 3
    assert path.exists()
    with pytest.raises(ValueError, match="does not know"):
        shell.run_cell_magic("leadline", "1x", "pass")
