"""bench/gpu/check.sh without a GPU: how its parts read and judge, what it says here, and a rehearsal over the fakes."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leadline.profiles import open_profile

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "gpu"
SCRIPT = FOLDER / "check.sh"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def figures(**seconds: float) -> dict[str, Any]:
    return {tool: {"seconds": value, "calls_per_step": 100} for tool, value in seconds.items()}


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def test_what_misses_its_limit_fails_and_what_was_not_measured_is_not_passed() -> None:
    cost = load("gpu_cost")
    best = {
        "decode": figures(none=1.0, leadline=1.05, torch=1.10),
        "resnet50": figures(none=1.0, leadline=1.02, torch=1.01),
        "gpt": {"none": {"error": "no room"}},
    }
    sizes = {"1000": {"resident": 1 << 30, "size": 10}, "10000": {"resident": (1 << 30) + (1 << 20), "size": 10}}
    verdicts = cost.judge(best, sizes)
    assert verdicts["decode"]["ok"] is True
    assert verdicts["decode"]["share_of_torch"] == pytest.approx(0.5)
    assert verdicts["decode"]["us_per_call"] == pytest.approx(500)
    assert verdicts["resnet50"]["ok"] is False  # slower than torch.profiler in the same run
    assert verdicts["gpt"] == {"ok": None, "errors": {"none": "no room"}}
    assert verdicts["constant"]["ok"] is True
    noisy = cost.judge(best, sizes, {"resnet50": {"none": [1.0, 1.02]}})
    assert noisy["resnet50"]["ok"] is True  # the plain rounds lie further apart than the two tools
    leaking = {"1000": {"resident": 1 << 30, "size": 10}, "10000": {"resident": (1 << 30) + (100 << 20), "size": 10}}
    assert cost.judge(best, leaking)["constant"]["ok"] is False
    results = {
        "machine": {"gpu": "GPU"},
        "correctness": {"graphs": {"ok": False, "seconds": 1, "error": "a | b\nc"}},
        "cost": {"verdicts": verdicts},
        "whatif": {},
    }
    page = load("gpu_summary").summary(results)
    assert "| graphs | **failed** | 1 | a / b c |" in page and "| gpt | not done |" in page


def test_both_sides_of_the_differential_test_count_alike(tmp_path: Path, fakes: Path) -> None:
    reading = load("gpu_reading")
    script, output = ROOT / "tests/nvidia/fake_program.py", tmp_path / "out.leadline"
    environment = {**os.environ, "FAKES": str(fakes)}
    subprocess.run([sys.executable, str(script), str(output)], env=environment, check=True)
    counts, times = reading.kernels(open_profile(output))
    trace = {
        "traceEvents": [
            *[{"cat": "kernel", "name": "gemm(float*)", "dur": 50.0}] * 3,
            *[{"cat": "kernel", "name": "relu", "dur": 10.0}] * 3,
            {"cat": "cpu_op", "name": "aten::mm", "dur": 1.0},
        ]
    }
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    assert reading.trace_kernels(path) == (counts, times)
    assert reading.losses(open_profile(output)) == {}


def test_a_check_that_hangs_or_dies_is_a_failure_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = load("gpu_suite")
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    (tmp_path / "gpu_checks.py").write_text(
        "import os, subprocess, sys, time\n"
        "name, work = sys.argv[1:]\n"
        "if name == 'hangs':\n"
        "    child = subprocess.Popen(['sleep', '1000'])\n"
        "    open(work + '/child', 'w').write(str(child.pid))\n"
        "    time.sleep(1000)\n"
        "if name == 'dies': os.abort()\n"
        "open(f'{work}/{name}.json', 'w').write('{\"ok\": true, \"seconds\": 1}')\n"
    )
    monkeypatch.setattr(suite, "CHECKS", dict.fromkeys(("hangs", "dies", "works"), (None, 9.0)))
    monkeypatch.setattr(suite, "_LEAST_S", 1)
    out = tmp_path / "out"
    out.mkdir()
    made = suite.Suite(
        out, tmp_path, time.monotonic() + 1000, {"machine": {"gpu": "x"}, "correctness": {}, "cost": {}, "whatif": {}}
    )
    made.correctness(time.monotonic() + 1000)
    found = json.loads((out / "results.json").read_text())["correctness"]
    assert [result["ok"] for result in found.values()] == [False, False, True]
    assert found["hangs"]["error"] == "did not end within 9 s"
    assert found["dies"]["error"] == "died without a result"
    child = Path(f"/proc/{(tmp_path / 'child').read_text()}/stat")
    assert not child.exists() or ") Z " in child.read_text()  # gone, or dead and not yet fetched by init
    assert made.passed() is False


def test_a_program_without_torch_is_measured_as_the_check_wants_it(
    tmp_path: Path, fakes: Path, inject: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = load("gpu_more_checks")
    monkeypatch.setattr("leadline.capture.providers.nvidia.files.inject_library", lambda: inject)
    monkeypatch.setenv(checks.FAKES_VARIABLE, str(fakes))
    assert checks.without_torch(tmp_path) == {"ok": True, "sets": 10, "losses": {}, "sentences": []}


def test_the_script_says_what_is_missing(tmp_path: Path) -> None:
    bash = need_bash()
    without = subprocess.run([bash, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert without.returncode == 2 and "usage" in without.stderr
    unknown = subprocess.run(
        [bash, str(SCRIPT), str(tmp_path / "out"), "all"], capture_output=True, text=True, check=False
    )
    assert unknown.returncode == 2 and "no part called all" in unknown.stderr
    cmake = (
        tmp_path / "cmake"
    )  # one that fails, found first: building for real takes minutes and the rest of CI does it
    cmake.write_text("#!/bin/sh\necho no compiler here; exit 1\n")
    cmake.chmod(0o755)
    environment = {**os.environ, "PYTHON": sys.executable, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    broken = subprocess.run(
        [bash, str(SCRIPT), str(tmp_path / "out")], env=environment, capture_output=True, text=True, check=False
    )
    assert broken.returncode == 2 and "no compiler here" in broken.stdout and "could not be built" in broken.stderr


@pytest.mark.slow  # a minute of benchmarks, whose parts other tests run over the same fakes
@pytest.mark.timeout(900)
def test_a_rehearsal_runs_every_part_over_the_fakes(tmp_path: Path) -> None:
    """The whole script as on a GPU machine, but for the build: with few and plain files as result. It has time enough
    on a machine with much else to do: what is left out for want of time is another test's matter."""
    out, done = rehearse(tmp_path, seconds=800)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: a cost that nothing can be said of here
    results = json.loads((out / "results.json").read_text())
    failed = {name: result for name, result in results["correctness"].items() if result["ok"] is False}
    assert failed == {}
    left_out = {name: result["why"] for name, result in results["correctness"].items() if result["ok"] is None}
    assert set(left_out) - {"nvtx"} == {"compiled", "triton", "collective"} and all(left_out.values())
    assert {"decode", "resnet50", "gpt"} <= set(results["cost"]["verdicts"])
    assert results["cost"]["best"]["decode"]["leadline"]["calls_per_step"] > 99
    files = {path.relative_to(out).as_posix() for path in out.rglob("*")}
    assert files == {
        "summary.md", "results.json", "doctor.json", "build.log", "recordings.tar.gz", "profiles.tar.gz", "logs.tar.gz",
    }  # fmt: skip
    with tarfile.open(out / "recordings.tar.gz") as archive:
        names = archive.getnames()
    assert {"graph.txt", "graph.txt.folded", "streams.txt", "short-train.txt"} <= set(names)
    doctor = json.loads((out / "doctor.json").read_text())
    assert any(section["title"] == "NVIDIA GPU" for section in doctor["sections"])
    assert "| graphs | passed |" in (out / "summary.md").read_text()


@pytest.mark.slow  # half a minute of runs, one for each figure
@pytest.mark.timeout(600)
def test_a_rehearsal_of_the_event_tools_prints_the_figures_of_the_paper(tmp_path: Path) -> None:
    out, done = rehearse(tmp_path, "tools", seconds=500)
    results = json.loads((out / "tools.json").read_text())
    assert {name: result for name, result in results.items() if not result["ok"]} == {}, done.stdout + done.stderr
    assert results["device and host"]["sums are equal"] is True
    assert results["graphs"]["launches"] == 16
    page = (out / "tools.md").read_text()
    for figure in ("Figure 7", "Figure 13", "Table V"):
        assert f"## {figure}" in page
    assert "- gemm, 16, 100" in page


def rehearse(folder: Path, *parts: str, seconds: int) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The script over the fakes, with a package that is built already; where its results are, and how it ended."""
    bash = need_bash()
    if shutil.which("g++") is None:
        pytest.skip("The fake vendor libraries need g++, which was not found.")
    package = Path(importlib.util.find_spec("leadline").origin).parents[1]  # type: ignore[union-attr, arg-type]
    environment = {**os.environ, "PYTHON": sys.executable, "BUILT": str(package), "SECONDS_ALLOWED": str(seconds)}
    out = folder / "out"
    command = [bash, str(SCRIPT), "--fakes", str(out), *parts]
    return out, subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def need_bash() -> str:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("The script is for bash, which is not installed here.")
    return bash


@pytest.mark.parametrize("name", ["gpu_triton", "gpu_matmul"])
def test_kernels_are_annotated_with_names_that_triton_knows(name: str) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    kernels = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.decorator_list]
    assert kernels
    for kernel in kernels:
        notes = [one.annotation for one in kernel.args.args] + [kernel.returns]
        assert {ast.unparse(note) for note in notes if note is not None} <= {"tl.constexpr"}


def test_a_program_without_devices_ends_as_it_would_alone(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="The checks on a GPU are programs of torch.")
    output = tmp_path / "hidden.leadline"
    command = [sys.executable, "-m", "gpu_programs", "hidden", "leadline", str(output)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(FOLDER)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"available": False}
    assert output.exists()


def test_of_several_runs_each_check_is_the_last_that_did_it(tmp_path: Path) -> None:
    merge = load("gpu_merge")
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    place = "/home/me/env/lib/site-packages/nvidia/lib.so"
    done = {"graphs": {"ok": True, "replayed": 30, "seconds": 1, "status": {"path": place}},
            "triton": {"ok": False, "error": "A\nB: no", "seconds": 1}, "replay": {"ok": None, "seconds": 0}}  # fmt: skip
    (first / "results.json").write_text(json.dumps({"machine": {"gpu": "a GPU"}, "correctness": done}))
    (second / "triton.json").write_text(json.dumps({"ok": False, "error": "File\nNameError: Any", "seconds": 2}))
    (second / "planted.log").touch()
    merged = merge.merge([first, second])
    assert {name: (one["run"], one["ok"]) for name, one in merged["correctness"].items()} == {
        "graphs": (1, True), "triton": (2, False), "planted": (2, False)}  # fmt: skip
    text = merge.without_places(merge.page(merged, "a day") + json.dumps(merged))
    assert "| graphs | 1 | replayed 30 |" in text and "NameError: Any |" in text and "| planted | **failed** |" in text
    assert "/home/me" not in text and "nvidia/lib.so" in text
