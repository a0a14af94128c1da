"""From samples of the (fake) GPU's program counter to lines of source in the profile, the report and the findings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.truth.invariants import contradictions

from leadline.analysis.analyze import analyze
from leadline.cli.main import main
from leadline.profiles import Profile, open_profile
from leadline.profiles.build import build as drawn
from leadline.profiles.codetables import stored_code
from leadline.report.build import build_report
from leadline.report.kernel_source import kernel_heat
from leadline.schema import LossKind

HERE = Path(__file__).parent
CUBIN = HERE.parent / "profiles" / "cubins" / "rmsnorm.sm_90.cubin"
KERNEL = "_Z7rmsnormPK6__halfS1_PS_i"
# The Llama case of DeepContext's Table 3: conversions wait for arithmetic and the loads, a short kernel for constants.
SAMPLES = {
    (0x120, "long_scoreboard"): 30,
    (0x150, "long_scoreboard"): 10,
    (0x150, "math_pipe_throttle"): 25,
    (0x160, "wait"): 5,
    (0x170, "selected"): 10,
    (0x450, "imc_miss"): 20,
}


def run(tmp_path: Path, fakes: Path, *options: str, **environment: str) -> Profile:
    output = tmp_path / "out.leadline"
    told = " ".join(f"{KERNEL},{offset},{stall},{count}" for (offset, stall), count in SAMPLES.items())
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "-o", str(output), *options]
    done = subprocess.run(
        [*command, str(HERE / "sampled_program.py")],
        env={**os.environ, "FAKES": str(fakes), "CUBIN": str(CUBIN), "KERNEL": KERNEL, "SAMPLES": told}
        | {"LEADLINE_PC_AFTER": "3"}
        | {"LEADLINE_NVDISASM": "", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return open_profile(output)


def below_kernels(profile: Profile) -> dict[tuple[str, ...], int]:
    """Frames below a kernel to samples."""
    found: dict[tuple[str, ...], int] = {}
    for node in profile.tree.find(kind="instruction"):
        if not (count := node.exclusive("instruction_samples").sum):
            continue
        path = list(node.path())
        kernel = next(place for place, step in enumerate(path) if step.kind == "kernel")
        key = tuple(f"{Path(step.file).name}:{step.line} {step.name}" for step in path[kernel + 1 :])
        found[key] = found.get(key, 0) + count
    return found


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory, fakes: Path) -> Profile:
    return run(tmp_path_factory.mktemp("sampled"), fakes, "--instructions", "--budget", "100%")


def test_samples_stand_below_their_kernel_on_the_lines_they_were_inlined_through(profile: Profile) -> None:
    found = below_kernels(profile)
    windows = next(iter(found.values())) // 30
    rmsnorm = "rmsnorm.cu:28 rmsnorm"
    inlined = (rmsnorm, "rmsnorm.cu:12 square", "rmsnorm.cu:8 to_float", "cuda_fp16.hpp:708 __half2float")
    assert windows > 0
    assert {path: count // windows for path, count in found.items()} == {
        (rmsnorm, "rmsnorm.cu:28 +0x0120"): 30,
        (*inlined, "cuda_fp16.hpp:708 +0x0150"): 35,
        (rmsnorm, "rmsnorm.cu:28 +0x0160"): 5,
        ("rmsnorm.cu:27 rmsnorm", "rmsnorm.cu:27 +0x0170"): 10,
        ("rmsnorm.cu:34 rmsnorm", "rmsnorm.cu:34 +0x0450"): 20,
    }
    assert contradictions(profile) == []
    told = profile.meta["available"]["nvidia"]["details"]["instructions"]
    assert told["mode"] == "continuous"
    assert told["by_window"] == told["samples"] == 100 * windows
    assert told["by_launch"] == told["unattributed"] == 0


def test_the_report_shows_heat_on_the_source(
    profile: Profile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (kernel,) = kernel_heat(profile, "rmsnorm")
    by_line = {(Path(line.file).name, line.line): line for line in kernel.lines}
    assert by_line["rmsnorm.cu", 28].samples == 0.7 * kernel.samples
    assert by_line["rmsnorm.cu", 28].own == 0.35 * kernel.samples
    assert by_line["rmsnorm.cu", 12].reasons[0].name == "math_pipe_throttle"
    assert {reason.name: reason.group for reason in kernel.reasons} == {
        "long_scoreboard": "memory",
        "math_pipe_throttle": "pipe",
        "imc_miss": "fetch",
        "wait": "dependency",
    }
    assert kernel.issued == 0.1 * kernel.samples
    assert kernel_heat(profile, "no such kernel") == []
    assert any(command.endswith("--source") for command in build_report(profile).next_commands)


def test_the_file_holds_the_code_that_was_sampled_and_its_instructions(profile: Profile) -> None:
    ((code, data),) = stored_code(profile.tables)
    assert data == CUBIN.read_bytes()
    lines, text = profile.table("code_lines"), profile.tables.strings
    assert {text[row] for row in lines["hash"].tolist()} == {code}
    places = {offset: (Path(text[file]).name, line) for offset, file, line in
              zip(lines["offset"].tolist(), lines["file"].tolist(), lines["line"].tolist(), strict=True)}  # fmt: skip
    assert places[0x120] == ("rmsnorm.cu", 28) and places[0x150] == ("cuda_fp16.hpp", 708)
    assert sorted(places) == list(range(0, len(places) * 16, 16))


def test_without_code_the_file_holds_none(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, "--instructions", "--no-code", "--budget", "100%")
    assert profile.tables.rows("code_objects") == profile.tables.rows("code_lines") == 0


def test_samples_that_tell_the_place_alone_do_not_say_that_it_was_issued() -> None:
    lines = "kernel k | gpu_time@0:7=9/1\n  instruction s_waitcnt | instruction_samples@0:7=100 address=16"
    (kernel,) = kernel_heat(drawn(lines))
    assert (kernel.samples, kernel.issued, kernel.reasons) == (100, 0, ())


def test_sources_and_json_of_the_command(tmp_path: Path, fakes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, fakes, "--instructions=serialised", "--budget", "100%")
    file = str(tmp_path / "out.leadline")
    assert main(["report", file, "--source", "--focus", "rms.*"]) == 0
    text = capsys.readouterr().out
    assert "waits for data from global or local memory" in text and "rmsnorm.cu" in text and "0x0150" in text
    assert main(["report", file, "--source", "--format", "json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)
    assert kernel["lines"][0]["line"] == 28
    assert main(["report", file, "--source", "--focus", "absent"]) == 2
    assert "no sampled kernel matches 'absent'" in capsys.readouterr().err
    told = open_profile(file).meta["available"]["nvidia"]["details"]["instructions"]
    assert told["mode"] == "serialised" and told["by_launch"] == told["samples"] > 0


def test_the_finding_names_the_reason_the_line_and_the_share(profile: Profile) -> None:
    (stall,) = [one for one in analyze(profile) if one.rule == "stall"]
    assert "in 40 % it waits for data from global or local memory" in stall.title
    assert "at rmsnorm.cu:28 (30 %)" in stall.title
    assert "reasons: long_scoreboard 40 %, math_pipe_throttle 25 %, imc_miss 20 %" in stall.evidence
    assert stall.lines[0].file.endswith("sampled_program.py")


def times(profile: Profile) -> Mapping[str, tuple[int, int]]:
    return {node.name: (time.count, time.sum) for node in profile.tree.find(kind="kernel")
            if (time := node.exclusive("gpu_time")).count}  # fmt: skip


def test_kernel_times_are_those_of_a_run_without(tmp_path: Path, fakes: Path, profile: Profile) -> None:
    assert times(run(tmp_path, fakes)) == times(profile)


@pytest.mark.parametrize(
    ("code", "words"),
    [("35", "does not permit it to this user (ERR_NVGPUCTRPERM)"), ("26", "another profiler"), ("43", "(MIG)")],
)
def test_what_is_refused_is_said_and_all_else_is_measured(tmp_path: Path, fakes: Path, code: str, words: str) -> None:
    profile = run(tmp_path, fakes, "--instructions", "--budget", "100%", REFUSE=code)
    assert below_kernels(profile) == {}
    assert times(profile)["rmsnorm(__half const*, __half const*, __half*, int)"][0] == 40
    (loss,) = [one for one in profile.losses if one.kind == LossKind.PROVIDER_UNAVAILABLE]
    assert words in loss.detail


def test_code_without_lines_gives_offsets(tmp_path: Path, fakes: Path) -> None:
    bare = tmp_path / "bare.cubin"
    bare.write_bytes(CUBIN.read_bytes().replace(b".debug_line", b".nothing.in"))
    profile = run(tmp_path, fakes, "--instructions", "--budget", "100%", CUBIN=str(bare))
    assert {path[-1] for path in below_kernels(profile)} == {f":0 +{offset:#06x}" for offset, _ in SAMPLES}
