"""Plans for managed memory: against known answers and a check by bytes, and carried out over a stand-in driver."""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.eventtools.conftest import Runner

from leadline.cli.main import main
from leadline.tools.errors import ToolError
from leadline.tools.installed import MANAGED, installed
from leadline.tools.managed_plan import ManagedPlan, Step, make_plan

DRIVER = r"""
#include <cstdio>
#include <cstdlib>
struct Location { int type; int id; };
static int failing = 0;
extern "C" {
void stand_in_fails(int result) { failing = result; }
int cuMemPrefetchAsync_v2(unsigned long long at, size_t bytes, Location to, unsigned flags, void* stream) {
  std::fprintf(stderr, "CALL %s %llx %zu %d %u %p\n", to.type == 1 ? "device" : to.type == 2 ? "host" : "?", at, bytes,
               to.id, flags, stream);
  return failing;
}
int cuMemDiscardBatchAsync(unsigned long long* at, size_t* bytes, size_t count, unsigned long long flags, void*) {
  for (size_t i = 0; i < count; ++i) std::fprintf(stderr, "CALL discard %llx %zu 0 %llu 0\n", at[i], bytes[i], flags);
  return 0;
}
int cuMemAllocManaged(unsigned long long* at, size_t bytes, unsigned flags) {
  *at = flags == 1 && bytes < 1000000 ? (unsigned long long)std::malloc(bytes) : 0;
  return *at ? 0 : 2;
}
int cuMemFree_v2(unsigned long long at) { std::free((void*)at); std::fprintf(stderr, "CALL free\n"); return 0; }
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in of the driver's library that tells each call."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("The stand-in of the driver needs a C++ compiler and none was found.")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.cpp").write_text(DRIVER)
    file = folder / "libcuda.so.1"
    words = [compiler, "-shared", "-fPIC", f"-Wl,-soname,{file.name}", str(folder / "driver.cpp"), "-o", str(file)]
    subprocess.run(words, check=True)
    return file


def test_known_answers() -> None:
    # Two weights in turns, room for one of them and an activation of half the size.
    kernels = ["a", "b", "a", "b"]
    made = make_plan(kernels, [[0, 2], [1, 2, 3], [0, 3], [1]], [4, 4, 1, 1], frozenset({0, 1}), 6, 1)
    assert made.steps[0] == Step(evict=(0,))  # room for weight 1, which is made by the next launch
    assert made.steps[1] == Step(evict=(1,), prefetch=(0,), discard=(2,))
    assert made.steps[2] == Step(evict=(0,), prefetch=(1,), discard=(3,))
    assert 3 not in made.steps
    roomy = make_plan(kernels, [[0, 2], [1, 2, 3], [0, 3], [1]], [4, 4, 1, 1], frozenset({0, 1}), 100, 4)
    assert all(not step.evict and not step.prefetch for step in roomy.steps.values())


def test_random_programs_stay_within_memory_and_need_few_faults() -> None:
    numbers = random.Random(5)
    for _ in range(60):
        sizes = [numbers.randint(1, 9) for _ in range(numbers.randint(3, 20))]
        uses = [numbers.sample(range(len(sizes)), numbers.randint(1, 3)) for _ in range(60)]
        lasting = frozenset(one for one in range(len(sizes)) if numbers.random() < 0.3)
        memory = numbers.randint(27, 60)  # more than any launch needs
        made = make_plan(["k"] * 60, uses, sizes, lasting, memory, 1)
        here: set[int] = set()
        seen: set[int] = set()
        for number, of_launch in enumerate(uses):
            for one in of_launch:
                # With room for each launch and the next one's tensors brought ahead, only what is new comes by itself.
                assert one in here or one not in seen or sum(sizes[x] for x in {*of_launch, *uses[number - 1]}) > memory
                here.add(one)
            seen.update(of_launch)
            step = made.steps.get(number, Step())
            for one in step.discard:
                assert one not in lasting and all(one not in later for later in uses[number + 1 :])
            here -= {*step.evict, *step.discard}
            assert not set(step.evict) & set(step.prefetch)
            if number + 1 < len(uses):
                assert not set(step.evict) & set(uses[number + 1])
            here |= set(step.prefetch)
            assert set(step.prefetch) <= seen
            if sum(sizes[x] for x in {*of_launch, *uses[min(number + 1, 59)]}) <= memory:
                assert sum(sizes[one] for one in here) <= memory


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"leadline_managed_plan": "x"}'])
def test_a_file_that_is_no_plan_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    file = tmp_path / "a.plan.json"
    file.write_text(text)
    assert main(["uvm", "apply", str(file), "x.py"]) == 2
    assert "is no plan for managed memory" in capsys.readouterr().err
    assert main(["uvm", "plan", "x.npz", "-o", str(tmp_path / "none" / "p.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    with pytest.raises(ToolError, match="There is no file"):
        ManagedPlan.read(tmp_path / "none")


PROGRAM = """
import torch
torch.manual_seed(0)
large = torch.ones(300, 300)
total = large.sum()
del large
weights = [torch.nn.Parameter(torch.randn(64, 64)) for _ in range(6)]
x = torch.randn(64, 64)
for _ in range(2):
    for one in weights:
        x = torch.tanh(x @ one)
print("done", round(float(x.sum().detach()), 2))
"""

APPLY = """
import runpy, sys
import torch
from pathlib import Path
from leadline.tools.backends.dispatch import Everywhere
from leadline.tools.managed_driver import ManagedDriver
from leadline.tools.managed_plan import ManagedPlan
from leadline.tools.managed_run import Applier
plan, driver = ManagedPlan.read(Path(sys.argv[1])), ManagedDriver(sys.argv[2])
for program, result in (("same.py", 0), ("other.py", 0), ("same.py", 700)):
    driver._library.stand_in_fails(result)
    print("RUN", flush=True)
    print("RUN", file=sys.stderr)
    applier = Applier(plan, driver, lambda device: (7, 8), discard=True)
    everywhere = Everywhere(applier)
    everywhere.install()
    runpy.run_path(program, run_name="__main__")
    applier.on = False
    everywhere.uninstall()
    print("LAUNCHES", applier.launches)
"""


def test_a_recorded_program_is_planned_and_runs_by_the_plan(
    run: Runner, driver: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="this test measures real PyTorch; install torch==2.13.0 to run it")
    recorded = run(PROGRAM, "--tool", "record", "--backend", "declared")
    assert recorded.code == 0, recorded.err
    file, plan_file = run.folder / "events.npz", run.folder / "p.json"
    options = ["--tool-option", "block=4KiB", "--tool-option", "pool=64KiB"]
    assert main(["uvm", "plan", str(file), "--memory", "60KiB", "--ahead", "2", "-o", str(plan_file), *options]) == 0
    shown = capsys.readouterr().out
    assert "plan, 2 launches ahead" in shown and "leadline tool uvm apply" in shown
    plan = ManagedPlan.read(plan_file)
    listed = {key: sum(len(getattr(s, key)) for s in plan.steps.values()) for key in ("prefetch", "evict", "discard")}
    assert listed["prefetch"] >= 5 and listed["evict"] >= 5 and listed["discard"] >= 5

    (run.folder / "same.py").write_text(PROGRAM)
    (run.folder / "other.py").write_text(PROGRAM.replace("tanh", "relu"))
    ran = subprocess.run(
        [sys.executable, "-c", APPLY, str(plan_file), str(driver)],
        cwd=run.folder,
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"},  # fixed: the large tensor has a mapping of its own
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    outs, errs = ran.stdout.split("RUN")[1:], ran.stderr.split("RUN")[1:]
    assert recorded.out.split("done")[1].split()[0] in outs[0]
    assert f"LAUNCHES {len(plan.kernels)}" in outs[0]
    assert "not followed" not in errs[0]
    calls = [line.split()[1:] for line in errs[0].splitlines() if line.startswith("CALL")]
    sizes = {
        where: [size for step in plan.steps.values() for size in (plan.sizes[one] for one in getattr(step, key))]
        for where, key in (("device", "prefetch"), ("host", "evict"))
    }
    for where, expected in sizes.items():
        made = [int(call[2]) for call in calls if call[0] == where]
        assert made == expected
    assert all(call[5] == "0x7" for call in calls if call[0] in sizes)
    discarded = [int(call[2]) for call in calls if call[0] == "discard"]
    assert discarded.count(300 * 300 * 4) == 1  # nobody else moves in where it was
    assert len(discarded) <= listed["discard"]
    assert errs[1].count("not followed any further") == 1 and "was aten::tanh" in errs[1]
    assert errs[2].count("the driver answered 700") == 1
    assert all("done" in out for out in outs)
    damaged = json.loads(plan_file.read_text())
    damaged["steps"] = {"0": {"prefetch": [10**9]}}
    plan_file.write_text(json.dumps(damaged))
    assert main(["uvm", "apply", str(plan_file), "x.py"]) == 2
    assert "names an object that there is not" in capsys.readouterr().err


def test_torch_is_given_managed_memory(driver: Path) -> None:
    library = installed(MANAGED)
    if not library.is_file():
        pytest.skip("this build has no libleadline_managed.so; run make build")
    ctypes.CDLL(str(driver), mode=ctypes.RTLD_GLOBAL)
    native = ctypes.CDLL(str(library))
    native.leadline_managed_alloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    native.leadline_managed_alloc.restype = ctypes.c_void_p
    native.leadline_managed_free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    address = native.leadline_managed_alloc(4096, 0, None)
    assert address
    ctypes.memset(address, 7, 4096)
    native.leadline_managed_free(address, 4096, 0, None)
    assert native.leadline_managed_alloc(2_000_000, 0, None) is None
    assert native.leadline_managed_alloc(0, 0, None) is None
