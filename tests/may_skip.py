"""What may skip when everything a test needs should be there: `pytest --strict-skips`, as continuous integration runs it.

Each row: a pattern for the test or file, a pattern for the reason, and the sentence that says why no machine is at fault.
Any other skip fails the run, so a broken torch, a missing browser or an npm package that no longer installs cannot hide.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path

TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"

Row = tuple[str, str, str]

ALWAYS: list[Row] = [
    (
        "tests/serving/test_vllm.py",
        "vLLM is not installed",
        "its wheel pins hundreds of packages; `make test-serving` runs these tests nightly where it is",
    ),
    (
        "tests/serving/test_server.py",
        "vLLM is not installed",
        "its wheel pins hundreds of packages; `make test-serving` runs these tests nightly where it is",
    ),
    (
        "tests/capture/test_layouts.py",
        "earlier versions do not describe themselves",
        "it is about a table that CPython has since 3.13; `make test-pythons` and `make test-python-next` run it there",
    ),
    (
        "tests/nvidia/test_pm_sampling_abi.py",
        "No CUPTI that plans without a driver",
        "releases after 13.0 ask the driver; what they would answer is written down and was compared with 13.0",
    ),
    (
        "tests/amd/test_roctracer_abi.py",
        "The headers of ROCm 6.1 are not here",
        "they are in a wheel of 200 MB; `make test-rocm61` takes them, and those of ROCm 7.1 are compared everywhere",
    ),
    (
        "tests/jax/test_plugin.py",
        "make test-pjrt",
        "the real plug-in is a download of 174 MB; one without a device is compiled and driven everywhere",
    ),
    (
        "tests/nvidia/test_triton.py",
        "make test-triton",
        "Triton is a download of 190 MB; `make test-triton` runs these",
    ),
    (
        "tests/nvidia/test_device_text.py",
        "NVIDIA's compilers are not installed",
        "nvcc is a toolkit, and NVRTC with ptxas a download of 190 MB; that sources run and give the right sums is tested everywhere",
    ),
    (
        "tests/cpu/test_other_profilers.py",
        "perf is not installed here|perf may not record here",
        "perf belongs to a kernel, and many containers let nobody count; py-spy compares the Python side everywhere",
    ),
    (
        "tests/nvidia/test_device_text.py",
        "is older than GPUs of compute capability",
        "the NVRTC that comes with an older torch; newer ones and nvcc compile for all",
    ),
    (
        "tests/eventtools/test_triton_interpreter.py",
        "make test-triton",
        "as above",
    ),
    (
        "tests/tensorflow",
        "make test-tf",
        "TensorFlow is a download of 600 MB; `make test-tf` runs these, and its recorded files are read everywhere",
    ),
    (
        "tests/convert/test_ctf.py",
        "CTF 2 is read by babeltrace2 2.1",
        "Debian 12 has 2.0.4; the packets are compared with those of CTF 1.8, which it reads",
    ),
    (
        "tests/convert/test_lttng.py",
        "LTTng does not record here",
        "another session daemon runs, or containers forbid what it needs; what it writes was compared elsewhere",
    ),
    (
        "tests/kernel/",
        "this user may not use the kernel's tracer",
        "containers and hardened kernels keep tracefs to themselves; the drawn events are tested everywhere",
    ),
    (
        "tests/vscode/test_editor.py",
        "make test-vscode",
        "code-server is a download of 300 MB with modules to compile; `make test-vscode` runs these",
    ),
    (
        "tests/training/test_composer.py",
        "composer is not installed",
        "composer's releases need an older torch than the one tested here",
    ),
    (
        "tests/capture/test_launchers.py",
        "srun (is not here|needs a daemon)",
        "Slurm is several daemons that no developer's machine has; the test runs where Debian's slurmd, slurmctld and slurm-client are",
    ),
    (
        "tests/cpu/",
        "lets nobody count tasks",
        "containers and hardened kernels forbid perf_event_open; samples are then taken by timers, which is tested everywhere",
    ),
    (
        "tests/importers/test_perf_script.py",
        "perf (is not here|may not record here)",
        "the tool belongs to the kernel of the machine, and many containers forbid it; drawn texts are read everywhere",
    ),
    (
        "tests/trials/",
        "allows no overlay to an ordinary user",
        "containers and hardened kernels forbid it; the copied tree, which is then used, is tested everywhere",
    ),
    (
        "tests/capture/",
        "lets no user (make a process namespace|mount a file system)",
        "containers and hardened kernels forbid unshare to users",
    ),
]
# folders of which at least one test must have passed in a whole run
MUST_RUN = (
    "agent", "amd", "analysis", "attach", "capture", "cct", "cli", "compare", "compat", "convert", "cpu", "demo", "distributed", "docs", "eventtools", "foreign", "importers", "jax", "kernel",
    "nvidia", "problems",
    "profiles", "query", "report", "schema", "terminal", "testing", "tools", "torch", "trace", "training", "truth", "vscode",
    "ui", "whatif",
)  # fmt: skip


def rows() -> list[Row]:
    """The rows that hold on this machine."""
    found = list(ALWAYS)
    if not TRACES.is_dir():
        found.append(
            (
                "tests/",
                r"(traces|cases) (are|is) not (beside|at|here)|trace .* is not at",
                "the reference traces are not in the repository",
            )
        )
    if os.geteuid() == 0:
        found.append(("tests/capture/", "this user may write everywhere", "root is never refused a folder"))
    if _torch() < (2, 5):
        why = "torch 2.4 brings Triton 3.0"
        found.append(("tests/eventtools/test_triton_interpreter.py", "Triton 3.0's interpreter", why))
    if _torch() < (2, 6):
        for place in ("tests/torch/test_distributed.py", "tests/trace/test_exchanges.py"):
            found.append((place, "no fully_shard", "FSDP2 for the CPU came with torch 2.6"))
        found.append(("tests/trace/test_dataflow.py", "keeps every order", "in_order came with torch 2.6"))
        found.append(("tests/distributed/test_real_ranks.py", "do not name their groups", "as torch 2.4.1 has them"))
        found.append(("tests/training/test_flops_packed.py", "no flex attention", "it came with torch 2.5"))
        found.append(("tests/training/", "wants a newer PyTorch", "transformers 5 works with torch 2.6 and later"))
    if sys.version_info >= (3, 13) or platform.machine() != "x86_64":
        found.append(("tests/convert/test_hatchet.py", "hatchet", "hatchet has no release for this Python"))
    return found


def _torch() -> tuple[int, ...]:
    """Its version as numbers, (0,) where there is none."""
    try:
        return tuple(int(part) for part in importlib.metadata.version("torch").split(".")[:2])
    except importlib.metadata.PackageNotFoundError:
        return (0,)


def excuse(test: str, reason: str, allowed: list[Row] | None = None) -> str | None:
    """The sentence that allows this skip, or None."""
    for place, pattern, why in rows() if allowed is None else allowed:
        if test.startswith(place) and re.search(pattern, reason):
            return why
    return None
