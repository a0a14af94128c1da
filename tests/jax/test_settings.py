"""What a program sets or takes away: what is left to see is right, and what is missing is said in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.jax.conftest import PROGRAMS, Ran

import leadline

SOURCE = (PROGRAMS / "settings.py").read_text().splitlines()
PLAIN = ["before", "model", "layer"]
"""Functions around a product of a program that nothing was changed for."""


def _python_around(ran: Ran, program: str, operation: str) -> list[list[str]]:
    """Names of the Python frames between a program and each operation of that name."""
    kinds = ran.profile.tree.kinds.tolist()
    found = []
    for row in ran.rows(operation):
        names = []
        while row >= 0 and ran.paths[row] != f"jit({program})":
            if ran.line(row):
                names.append(ran.paths[row])
            row = ran.parents[row]
        if row >= 0 and kinds[row] == kinds[ran.rows("jit(before)")[0]]:
            found.append(names[::-1])
    return found


def _told(ran: Ran, words: str) -> int:
    return sum(words in loss.detail for loss in ran.profile.losses)


def test_without_frames_operations_have_their_names_and_it_is_said_that_their_lines_are_missing(
    run: Callable[..., Ran],
) -> None:
    ran = run("settings.py", "limit", "0")
    assert ran.runs("jit(after)") == 40
    assert _python_around(ran, "before", "dot_general")[0] == PLAIN
    assert set(map(tuple, _python_around(ran, "after", "dot_general"))) == {()}
    assert sum(ran.calls[row] for row in ran.rows("tanh") if "jit(after)" in ran.path(row)) == 80
    assert _told(ran, "jax_traceback_in_locations_limit is 0") == 1


def test_with_one_frame_operations_stand_on_it_and_it_is_said_that_there_are_more(run: Callable[..., Ran]) -> None:
    ran = run("settings.py", "limit", "1")
    assert _python_around(ran, "before", "dot_general")[0] == PLAIN
    assert set(map(tuple, _python_around(ran, "after", "dot_general"))) == {("layer",)}
    assert _told(ran, "set jax_traceback_in_locations_limit to 1") == 1


def test_without_whole_tracebacks_operations_stand_on_one_line_and_it_is_said(run: Callable[..., Ran]) -> None:
    ran = run("settings.py", "short")
    products = [
        row for row in ran.rows("dot_general") if any(name == "jit(after)" for name in ran.path(row)) and ran.calls[row]
    ]
    lines = {SOURCE[ran.line(ran.parents[row]) - 1].strip() for row in products}
    assert lines == {"return jnp.tanh(x @ x)"}
    assert _told(ran, "jax_include_full_tracebacks_in_locations is off") == 1


@pytest.mark.skipif(
    tuple(map(int, version("jax").split(".")[:2])) < (0, 7), reason="JAX before 0.7 does not tell what it compiles"
)
def test_listeners_that_the_program_clears_are_put_back_before_the_next_compilation(run: Callable[..., Ran]) -> None:
    ran = run("settings.py", "clear")
    compiled = [ran.profile.tree.node(row).detail.get("function") for row in ran.rows("compile")]
    assert {"before", "after", "last"} <= set(compiled)
    assert [ran.path(row)[-2] for row in ran.rows("jit(after)")] == ["main"], "below no compilation that went on"
    assert _python_around(ran, "after", "dot_general")[0] == ["after", "model", "layer"]
    assert ran.runs("jit(after)") == 40


def test_a_hook_that_another_tool_puts_in_is_called_and_counts_stay_exact(run: Callable[..., Ran]) -> None:
    from jax._src.lib import _jax

    if not hasattr(_jax.jax_jit, "set_post_hook_state"):
        pytest.skip("this release has one hook for all, which tests with jax_debug_nans cover")
    ran = run("settings.py", "hook")
    runs, called = map(int, ran.output.split())
    assert ran.runs("jit(after)") == runs
    assert called == runs - 1, "its first run is not one of the fast path"


def test_a_hook_that_another_tool_had_put_in_before_is_called_and_put_back(tmp_path: Path) -> None:
    from jax._src.lib import _jax

    if not hasattr(_jax.jax_jit, "set_post_hook_state"):
        pytest.skip("this release has one hook for all, which tests with jax_debug_nans cover")
    output = tmp_path / "hooked.leadline"
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "hooked_before.py"), str(output)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["9", "20", "9"]
    assert Ran(tmp_path, leadline.open(output), done.stdout, done.stderr).runs("jit(step)") == 20


def test_what_was_set_in_jax_is_as_it_was_found_at_the_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "put_back.py")],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["meanwhile"] != told["before"]
    assert told["after"] == told["before"]
    assert told["theirs"] == 7, "what the program has set since is its own"


def test_operations_of_a_function_that_runs_as_several_programs_are_called_estimates(run: Callable[..., Ran]) -> None:
    ran = run("grad_outside.py")
    assert ran.runs("jit(f)") == 200
    said = ran.profile.meta["available"]["jax"]["estimated"]
    assert "counts are exact" not in said
    assert "How often each program of jit(f) ran" in said
    assert not ran.profile.losses
