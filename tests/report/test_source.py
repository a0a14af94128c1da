"""Whose code a file is, and how files and names are shown."""

from __future__ import annotations

import pytest

from leadline.analysis.origin import Origin, is_library, origin
from leadline.report.source import short_names, visible


@pytest.mark.parametrize(
    ("file", "whose"),
    [
        ("/home/ada/gpt/train.py", Origin.USER),
        ("train.py", Origin.USER),
        ("<stdin>", Origin.USER),
        ("<ipython-input-3-abc>", Origin.USER),
        ("/home/ada/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py", Origin.FRAMEWORK),
        ("/usr/lib/python3/dist-packages/numpy/core/x.py", Origin.FRAMEWORK),
        ("/home/ada/.venv/lib/python3.11/site-packages/transformers/models/llama.py", Origin.PACKAGE),
        ("/home/ada/.venv/lib/python3.13t/site-packages/six.py", Origin.PACKAGE),
        ("/usr/lib/python3.11/runpy.py", Origin.RUNTIME),
        ("/usr/lib64/python3.14/threading.py", Origin.RUNTIME),
        ("<frozen importlib._bootstrap>", Origin.RUNTIME),
        ("<string>", Origin.RUNTIME),
        ("", Origin.RUNTIME),
        ("/src/leadline/python/leadline/capture/region.py", Origin.FRAMEWORK),
        ("/home/ada/.venv/lib/python3.11/site-packages/leadline/demo/train.py", Origin.USER),
        ("/home/ada/torch/train.py", Origin.USER),
        ("/home/ada/train.v2.py", Origin.USER),
        ("/tmp/ada_pyg/tmpx1/torch_geometric.nn.conv.gin_conv_GINConv_propagate_rg9_v_g9.py", Origin.PACKAGE),
        ("/tmp/torchinductor_ada/dn/cdnlgy7ekyh2f5a63fdjldmxx6hysyhkxavlzmachvv2fen6ftts.py", Origin.FRAMEWORK),
    ],
)
def test_origin(file, whose):
    assert origin(file) == whose
    assert is_library(file) == (whose != Origin.USER)


def test_files_below_the_working_directory_are_named_from_there():
    names = short_names(["/home/ada/gpt/train.py", "/home/ada/gpt/model/gpt.py"], "/home/ada/gpt")
    assert names == {"/home/ada/gpt/train.py": "train.py", "/home/ada/gpt/model/gpt.py": "model/gpt.py"}


def test_other_user_files_get_the_shortest_end_that_is_their_own():
    files = ["/a/train.py", "/b/x/model.py", "/b/y/model.py", "/b/pkg/__init__.py"]
    assert short_names(files, "/elsewhere") == {
        "/a/train.py": "train.py",
        "/b/x/model.py": "x/model.py",
        "/b/y/model.py": "y/model.py",
        "/b/pkg/__init__.py": "pkg/__init__.py",
    }


def test_library_files_are_named_from_their_package():
    venv = "/home/ada/.venv/lib/python3.11/"
    assert short_names([venv + "site-packages/torch/nn/f.py", venv + "runpy.py"], "/home/ada") == {
        venv + "site-packages/torch/nn/f.py": "torch/nn/f.py",
        venv + "runpy.py": "runpy.py",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("aten::add", "aten::add"),
        ("größe µ 漢字", "größe µ 漢字"),
        ("two\nlines\t\r", "two\\nlines\\t\\r"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("left\u202eright", "left\\u202eright"),
        ("\u2028", "\\u2028"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_visible_text_cannot_reach_the_terminal(text, shown):
    assert visible(text) == shown
