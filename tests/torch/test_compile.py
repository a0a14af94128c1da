"""torch.compile goes on as without us on every release, and its report adds up."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.capture.providers.torch.compile_phases import PhaseStack, follow_timings
from leadline.profiles import Node, Profile, open_profile

PROGRAM = """
import json
import sys
import time
import leadline

with leadline.profile(sys.argv[1], quiet=True):
    begin_ns = time.monotonic_ns()
    import torch

    def model(x, y):
        return torch.softmax(torch.relu(x) + y, -1).sum(0)

    x = torch.randn(32, 32, requires_grad=True)
    y = torch.randn(32, 32)
    expected = model(x, y)
    for backend in sys.argv[2:]:
        compiled = torch.compile(model, backend=backend)
        for _ in range(2):
            result = compiled(x, y)
            result.sum().backward()
        assert torch.allclose(result, expected, atol=1e-5)
        torch._dynamo.reset()
    wall_ns = time.monotonic_ns() - begin_ns
print(json.dumps(wall_ns))
"""


def compile_with(tmp_path: Path, *backends: str) -> tuple[Profile, int]:
    """The profile of a program that compiles, and how long it was measured in nanoseconds."""
    if "inductor" in backends and shutil.which("g++") is None:
        pytest.skip("Inductor's CPU backend needs g++ and none was found.")
    script = tmp_path / "compiled.py"
    script.write_text(PROGRAM)
    output = tmp_path / "compiled.leadline"
    workers = {"TORCHINDUCTOR_COMPILE_THREADS": "2"}  # as Inductor has them unless it is told otherwise
    environment = {**os.environ, **workers, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(script), str(output), *backends]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return open_profile(output), json.loads(result.stdout)


def check_phases(profile: Profile, *expected: str) -> None:
    assert {"compile", "dynamo", *expected} <= {node.name for node in profile.tree.find(kind="phase")}
    available = profile.meta["processes"][0]["available"]
    assert available["torch"]["ok"] is True, available["torch"]
    assert available["torch.compile"]["ok"] is True, available["torch.compile"]


def test_a_compiled_program_runs_and_its_time_adds_up(tmp_path: Path) -> None:
    profile, wall_ns = compile_with(tmp_path, "eager", "aot_eager")
    check_phases(profile)
    main = next(node for node in profile.tree.find(kind="thread") if node.name == "main")
    assert 0 < main.inclusive("time").sum <= wall_ns


def test_inductor_compiles_under_our_eyes(tmp_path: Path) -> None:
    profile, wall_ns = compile_with(tmp_path, "inductor")
    check_phases(profile, "inductor")
    main = next(node for node in profile.tree.find(kind="thread") if node.name == "main")
    assert 0 < main.inclusive("time").sum <= wall_ns


class Log:
    """Stands for the native module: writes down which phases begin and end."""

    def __init__(self) -> None:
        self.phases: list[str] = []

    def phase_begin(self, name: str) -> int:
        self.phases.append(f"+{name}")
        return len(self.phases)

    def phase_end(self, token: int) -> None:
        self.phases.append(f"-{self.phases[token - 1][1:]}")


@pytest.fixture
def log() -> Log:
    return Log()


COMPILE_OF_DYNAMO = ["+compile", "+dynamo", "-dynamo", "-compile"]


def follow(original: object, log: Log, said: list[str]) -> object:
    return follow_timings(original, PhaseStack(log), lambda: True, said.append)  # type: ignore[arg-type]


def test_timings_that_decorate_make_phases(log: Log) -> None:
    """As in torch 2.4: bare, or with the phase of what it decorates."""

    def dynamo_timed(original_function=None, phase_name=None, fwd_only=True):
        def decorate(function):
            return lambda *arguments: ("timed", function(*arguments))

        return decorate(original_function) if original_function else decorate

    said: list[str] = []
    followed = follow(dynamo_timed, log, said)

    @followed
    def dynamo_bare(x):
        return x

    @followed(phase_name="entire_frame_compile")
    def named(x):
        return x

    @followed(fwd_only=False)
    def compile_fx_inner(x):
        raise ValueError(x)

    assert dynamo_bare(1) == ("timed", 1)
    assert log.phases == COMPILE_OF_DYNAMO
    assert named(2) == ("timed", 2)
    assert log.phases == COMPILE_OF_DYNAMO * 2
    with pytest.raises(ValueError, match="3"):
        compile_fx_inner(3)
    assert log.phases[8:] == ["+compile", "+inductor", "-inductor", "-compile"]
    assert said == []


def test_timings_that_are_contexts_make_phases(log: Log) -> None:
    """As since torch 2.5, also where one serves as decorator and its function is called again."""
    timed = []

    @contextlib.contextmanager
    def dynamo_timed(key, phase_name=None, *, more=None):
        timed.append((key, phase_name, more))
        yield

    followed = follow(dynamo_timed, log, [])
    with followed("_compile.compile_inner", phase_name="entire_frame_compile", more=1):
        pass
    with followed("bytecode_tracing"):
        pass
    with followed(key="dynamo"):
        pass
    assert timed == [("_compile.compile_inner", "entire_frame_compile", 1), ("bytecode_tracing", None, None),
                     ("dynamo", None, None)]  # fmt: skip
    assert log.phases == COMPILE_OF_DYNAMO * 3

    @followed("dynamo")
    def twice():
        return "value"

    assert [twice(), twice()] == ["value", "value"]
    assert log.phases == COMPILE_OF_DYNAMO * 5


def test_timings_of_a_shape_nobody_knows_are_left_alone_and_said_once(log: Log) -> None:
    said: list[str] = []
    followed = follow(lambda *arguments, **named: 7, log, said)
    assert [followed("key"), followed(other=1)] == [7, 7]
    assert log.phases == []
    assert said == ["dynamo_timed returns int in this torch; compilation has no phases."]


SESSIONS = """
import sys
import leadline, torch

def model(x, y):
    return torch.softmax(torch.relu(x) + y, -1).sum(0)

compiled = torch.compile(model)
x, y = torch.randn(32, 32), torch.randn(32, 32)
if sys.argv[3] == "measured":
    with leadline.profile(sys.argv[1], quiet=True):
        compiled(x, y)
else:
    compiled(x, y)
with leadline.profile(sys.argv[2], quiet=True):
    compiled(x, y)
"""


def cpp_kernels(path: Path) -> list[Node]:
    return [node for node in open_profile(path).tree.find(kind="region") if node.name.startswith("cpp_fused")]


@pytest.mark.slow  # the C++ compiler takes its time
@pytest.mark.parametrize("first", ["measured", "unmeasured"])
def test_kernels_that_were_compiled_before_a_session_are_known_to_it(tmp_path: Path, first: str) -> None:
    if shutil.which("g++") is None:
        pytest.skip("Inductor's CPU backend needs g++ and none was found.")
    script = tmp_path / "sessions.py"
    script.write_text(SESSIONS)
    command = [sys.executable, str(script), str(tmp_path / "a.leadline"), str(tmp_path / "b.leadline"), first]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    kernels = cpp_kernels(tmp_path / "b.leadline")
    assert kernels and all("softmax" in json.dumps(node.detail) for node in kernels)
    if first == "measured":
        before = cpp_kernels(tmp_path / "a.leadline")
        assert [node.detail for node in before] == [node.detail for node in kernels]
