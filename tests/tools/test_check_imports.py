"""tools/check_imports.py passes on this tree and catches each kind of violation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_imports  # noqa: E402

Plant = Callable[[str, str], Path]


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """Write one file into an otherwise correct small tree and return its root."""
    for name, text in {
        "native/base/clock.h": "#pragma once\n#include <cstdint>\n",
        "native/cct/tree.h": '#include "base/clock.h"\n',
        "native/collector/collector.h": '#include "cct/tree.h"\n#include <leadline/monitor.h>\n',
        "native/testing/fake.h": '#include "base/clock.h"\n',
        "native/cct/tree_test.cpp": '#include <doctest/doctest.h>\n#include "cct/tree.h"\n#include "testing/fake.h"\n',
        "python/leadline/__init__.py": "import os\n",
        "python/leadline/profiles/tree.py": "import numpy\nfrom leadline.schema import TABLES\n",
        "python/leadline/trace/window.py": "from leadline.profiles.tree import Tree\n",
        "python/leadline/capture/session.py": "def f():\n    import torch\n    from leadline import _native\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return tmp_path

    return write


def test_this_tree_passes() -> None:
    assert check_imports.main(["--root", str(ROOT)]) == 0


def test_a_correct_tree_passes(plant: Plant) -> None:
    root = plant("python/leadline/trace/more.py", "from typing import TYPE_CHECKING\n")
    assert check_imports.main(["--root", str(root)]) == 0


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("native/cct/bad.h", '#include "collector/collector.h"\n', "cct may not include"),
        ("native/base/bad.cpp", "#include <Python.h>\n", "belongs in bindings/"),
        ("native/base/bad.cpp", "#include <immintrin.h>\n", "belongs in base/clock"),
        ("native/collector/bad.cpp", "#include <cuda.h>\n", "belongs in providers/nvidia/"),
        ("native/collector/bad.cpp", '#include "testing/fake.h"\n', "collector may not include"),
        ("native/cct/bad.h", "#include <leadline/monitor.h>\n", "public header"),
        ("native/cct/bad.h", '#include "tree.h"\n', "is not a path below native/"),
        ("native/surprise/new.h", "\n", "not in the import table"),
        ("python/leadline/capture/bad.py", "from leadline.profiles import tree\n", "may not import leadline.profile"),
        ("python/leadline/capture/bad.py", "import torch\n", "may not import torch at the top of a file"),
        ("python/leadline/profiles/bad.py", "from ..capture import session\n", "may not import leadline.capture"),
        ("python/leadline/profiles/bad.py", "from leadline import _native\n", "may not import leadline._native"),
        ("python/leadline/profiles/bad.py", "def f():\n    import torch\n", "may not import torch inside a function"),
        ("python/leadline/profiles/bad.py", "from leadline.trace import window\n", "may not import leadline.trace"),
        ("python/leadline/__init__.py", "import numpy\n", "may not import numpy"),
        ("python/leadline/__init__.py", "from leadline.profiles import tree\n", "may not import leadline.profile"),
    ],
)
def test_a_violation_is_caught(
    plant: Plant, capsys: pytest.CaptureFixture[str], name: str, text: str, says: str
) -> None:
    root = plant(name, text)
    assert check_imports.main(["--root", str(root)]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert name.removeprefix("python/") in error
