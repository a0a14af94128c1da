"""The sanitizer backend over the fake library: a program's drawn accesses come out in the tools' tables, exactly."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import vendor_fakes
from tests.eventtools.conftest import Ran, Runner
from tests.nvidia import fake_sanitizer

from leadline.tools import device_text
from leadline.tools.backends import Wants
from leadline.tools.backends.sanitizer import image, page_sizes
from leadline.tools.backends.sanitizer_files import architectures, library_candidates, why_not
from leadline.tools.errors import ToolError
from leadline.tools.ranges import Ranges

PROGRAM = """
import ctypes, os
import leadline
sanitizer = ctypes.CDLL(os.environ["LEADLINE_SANITIZER_LIBRARY"])

def play(text):
    assert sanitizer.fake_sanitizer_play(text.encode()) == 0, text

play('''
context A
alloc weights context=A bytes=262144
alloc out context=A bytes=65536
kernel _Z4gemmPfS_
read weights count=1024 stride=256
write out count=256
kernel copy
read out count=256
write weights first=4096 count=256 {value}
module m context=A functions=_Z4gemmPfS_,copy
''')
with leadline.region("first"):
    sanitizer.fake_sanitizer_play(b"launch _Z4gemmPfS_ grid=8 block=128 times=3\\nwait")  # line of gemm
with leadline.region("second"):
    sanitizer.fake_sanitizer_play(b"launch copy grid=2 block=128\\nwait")  # line of copy
{more}
for name in ("sanitizerStreamSynchronize", "sanitizerMemcpyDeviceToHost", "sanitizerPatchModule"):
    sanitizer.fake_sanitizer_calls.restype = ctypes.c_uint64
    print(name, sanitizer.fake_sanitizer_calls(name.encode()))
"""
ROWS = """
class Rows(Tool):
    events = {"launch": ["kernel"], "touched": ["launch", "object", "first", "end", "bytes", "pages", "reads", "writes"],
              "block": ["launch", "threads", "count"]}
    def start(self): self.kept = {"touched": [], "block": [], "launch": []}
    def keep(self, b):
        for row in range(len(b)):
            one = {name: int(b[name][row]) for name in b.columns() if "@" not in name}
            one["kernel"] = self.names[int(self.launches.kernel[one["launch"]])]
            if "object" in one: one["size"] = int(self.objects.bytes[one["object"]])
            if "place" in one: one["line"] = self.places.line(one["place"])
            self.kept[b.event.name].append(one)
    launch = touched = block = keep
    def finish(self, out):
        for name, rows in self.kept.items(): out.table(name, rows)
"""


@pytest.fixture(scope="module", params=[pytest.param("plain functions", marks=pytest.mark.slow), "the device's text"])
def fakes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the environment must say so that the fakes are used."""
    folder = tmp_path_factory.mktemp("sanitizer")
    if request.param == "the device's text":
        return environment(folder, fake_sanitizer.build_text(folder, compiler(), device_text.source()))
    return environment(folder, fake_sanitizer.build_patches(folder, compiler()))


def compiler() -> str:
    found = shutil.which("g++") or shutil.which("clang++")
    if found is None:
        pytest.skip("The fake vendor libraries need a C++ compiler and none was found.")
    return found


def environment(folder: Path, patches: Path) -> dict[str, str]:
    library = fake_sanitizer.build(folder, compiler())
    text = folder / "text"
    text.write_text(f"leadline fake patches\n{patches}")
    return {"LEADLINE_SANITIZER_LIBRARY": str(library), "LEADLINE_SANITIZER_TEXT": str(text)}


def program(more: str = "", value: str = "") -> str:
    return PROGRAM.replace("{more}", more).replace("{value}", value)


def line_of(text: str, what: str) -> str:
    return f"program.py:{next(number for number, line in enumerate(text.splitlines(), 1) if what in line)}"


def short(rows: list[dict[str, int]]) -> list[tuple[int, ...]]:
    return [
        tuple(row[name] for name in ("launch", "size", "reads", "writes", "pages", "first", "end"))
        for row in sorted(rows, key=lambda row: (row["launch"], -row["size"]))
    ]


def test_drawn_accesses_come_out_and_nobody_waited(fakes: dict[str, str], tmp_path: Path) -> None:
    ran = Runner(tmp_path)(program(), "--tool", "working_set", "--backend", "sanitizer", tools=ROWS, env=fakes)
    assert ran.code == 0, ran.err
    gemm = [(262144, 1024, 0, 64, 0, 261892), (65536, 0, 256, 1, 0, 1024)]
    copy = [(262144, 0, 256, 1, 4096, 5120), (65536, 256, 0, 1, 0, 1024)]
    expected = [(launch, *row) for launch, rows in enumerate((gemm, gemm, gemm, copy)) for row in rows]
    assert short(ran.table("Rows", "touched")) == expected
    assert [(row["launch"], row["threads"], row["count"]) for row in ran.table("Rows", "block")] == [
        *((launch, 128, 8) for launch in range(3)),
        (3, 128, 2),
    ]
    launches = ran.table("Rows", "launch")
    assert [row["kernel"] for row in launches] == ["gemm(float*, float*)"] * 3 + ["copy"]
    assert [(row["blocks"], row["threads"]) for row in launches] == [(8, 128)] * 3 + [(2, 128)]
    text = program()
    assert [row["line"] for row in launches] == [line_of(text, "line of gemm")] * 3 + [line_of(text, "line of copy")]
    assert ran.found("Rows")["lost"] == {}
    assert "sanitizerStreamSynchronize 0" in ran.out and "sanitizerMemcpyDeviceToHost 0" in ran.out
    assert ran.found("working_set")["problem"] == ""
    assert ran.found("working_set")["launches"] == 4


def test_ranges_measure_exactly_those(fakes: dict[str, str], tmp_path: Path) -> None:
    for number, (arguments, launches) in enumerate(
        (
            (("--launch-range", "1:3"), [1, 2]),
            (("--kernel", "^copy$"), [3]),
            (("--kernel-name", "gemm", "--every", "2"), [0, 2]),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        ran = Runner(folder)(program(), *arguments, "--backend", "sanitizer", tools=ROWS, env=fakes)
        assert ran.code == 0, ran.err
        assert [row["launch"] for row in ran.table("Rows", "launch")] == launches
        assert {row["launch"] for row in ran.table("Rows", "touched")} == set(launches)
        assert ran.found("Rows")["launches_left_out"] == 4 - len(launches)


def test_launches_without_a_tracker_are_counted_and_said(fakes: dict[str, str], tmp_path: Path) -> None:
    more = 'play("hold A stream=1\\nlaunch copy grid=2 block=128 times=70\\nrelease-stream A stream=1\\nwait")'
    ran = Runner(tmp_path)(program(more), "--backend", "sanitizer", tools=ROWS, env=fakes)
    assert ran.code == 0, ran.err
    assert ran.found("Rows")["lost"] == {"launches that found no tracker free": 6}
    assert len(ran.table("Rows", "launch")) == 74
    assert len({row["launch"] for row in ran.table("Rows", "touched")}) == 68


def test_a_nan_that_a_kernel_stores_is_found(fakes: dict[str, str], tmp_path: Path) -> None:
    text = program(value="value=0x7fc00000")
    arguments = ("--tool", "value_check", "--backend", "sanitizer")
    ran = Runner(tmp_path)(text, *arguments, env=fakes)
    assert ran.code == 0, ran.err
    assert line_of(text, "line of copy") in ran.err
    assert "copy" in ran.err


LARGE = """
LL_STORE(a) {
  if (ll_is_float(a.object) && a.value > 2.5) ll_count(a.object);
}
"""
COUNTS = f"""
class Large(Tool):
    events = {{"launch": [], "count": ["launch", "object", "value"]}}
    gpu = {LARGE!r}
    def start(self): self.kept = []
    def launch(self, b): pass
    def count(self, b):
        self.kept += [(int(n), int(self.objects.bytes[o]), int(v)) for n, o, v in zip(b["launch"], b["object"], b["value"])]
    def finish(self, out):
        out.table("large", [{{"launch": n, "size": size, "value": value}} for n, size, value in self.kept])
"""
STORES = """
context A
alloc small context=A bytes=4096
alloc large context=A bytes=4096
kernel fill
write small count=256 value=0x40000000
write large first=1024 count=200 value=0x40400000
read large count=256
module m context=A functions=fill
launch fill grid=2 block=128 times=2
wait
"""
SHARED = """
context A
kernel tile
read 0 count=100 stride=4 point=4 pc=32
read 0 count=128 stride=128 point=4 pc=48
read 0 count=70 stride=8 point=4 pc=64
module m context=A functions=tile
launch tile grid=1 block=128
wait
"""
"""Three loads of shared memory, by 128 threads: without conflicts by 100 of them; all 32 lanes of each warp in one bank; two
lanes in each bank, by 70 of them."""
BARRIERS = """
context A
alloc data context=A bytes=65536
kernel tile
read data count=128
read 0 count=128 point=6 pc=48
read data first=4096 count=100
read 0 count=100 point=6 pc=64
module m context=A functions=tile
launch tile grid=1 block=128 times=6
wait
"""
PLAY = """
import ctypes, os
import leadline
assert ctypes.CDLL(os.environ["LEADLINE_SANITIZER_LIBRARY"]).fake_sanitizer_play(b{text!r}) == 0
"""


def play(text: str) -> str:
    return PLAY.replace("{text!r}", repr(text))


def test_a_text_of_a_tool_counts_on_the_device(tmp_path: Path) -> None:
    built = fake_sanitizer.build_text(tmp_path, compiler(), device_text.source(LARGE, "Large"))
    env = environment(tmp_path, built)
    ran = Runner(tmp_path)(play(STORES), "--backend", "sanitizer", tools=COUNTS, env=env)
    assert ran.code == 0, ran.err
    assert [tuple(row.values()) for row in ran.table("Large")] == [(0, 4096, 200), (1, 4096, 200)]
    assert ran.found("Large")["lost"] == {}


def test_waits_at_barriers_are_measured_by_the_device(tmp_path: Path) -> None:
    env = environment(tmp_path, fake_sanitizer.build_text(tmp_path, compiler(), device_text.source()))
    ran = Runner(tmp_path)(play(BARRIERS), "--tool", "barrier_stall", "--backend", "sanitizer", env=env)
    assert ran.code == 0, ran.err
    rows = {row["barrier"]: row for row in ran.table("barrier_stall")}
    # 100 of 128 threads come to the second barrier, since the others have ended: nobody waits for them for ever.
    assert {name: row["times"] for name, row in rows.items()} == {"tile+0x30": 6, "tile+0x40": 6}
    assert all(row["cycles"] > 0 for row in rows.values())
    assert ran.found("barrier_stall")["lost"] == {}


def test_conflicts_and_idle_lanes_are_counted_by_the_device(tmp_path: Path) -> None:
    env = environment(tmp_path, fake_sanitizer.build_text(tmp_path, compiler(), device_text.source()))
    tools = ("--tool", "bank_conflict", "--tool", "divergence")
    ran = Runner(tmp_path)(play(SHARED), *tools, "--backend", "sanitizer", env=env)
    assert ran.code == 0, ran.err
    conflicts = {row["instruction"]: (row["warps"], row["passes"]) for row in ran.table("bank_conflict")}
    # Of 70 threads the third warp has 6, which 6 banks serve in one pass.
    assert conflicts == {"tile+0x20": (4, 4), "tile+0x30": (4, 4 * 32), "tile+0x40": (3, 5)}
    lanes = {row["instruction"]: (row["warps"], row["lanes"], row["split warps"]) for row in ran.table("divergence")}
    assert lanes["tile+0x30"] == (4, 100, 0)
    assert lanes["tile+0x20"] == (4, pytest.approx(100 * 100 / 128), 25)
    assert lanes["tile+0x40"] == (3, pytest.approx(100 * 70 / 96), pytest.approx(100 / 3))


@pytest.mark.parametrize(
    ("first", "said"), [("driver mismatched", "connection to the CUDA driver"), ("release 13.0", "before 13.3")]
)
def test_what_is_in_the_way_is_a_loss(fakes: dict[str, str], tmp_path: Path, first: str, said: str) -> None:
    text = program().replace("play('''", f"play({first!r})\nplay('''", 1)
    ran = Runner(tmp_path)(text, "--backend", "sanitizer", tools=ROWS, env=fakes)
    assert ran.code == 0, ran.err
    assert said in " ".join(ran.found("Rows")["lost"])
    assert "sanitizerStreamSynchronize 0" in ran.out


def test_another_subscriber_is_said_and_the_program_runs(fakes: dict[str, str], tmp_path: Path) -> None:
    env = {**fakes, "FAKE_SANITIZER_TAKEN": "1"}
    ran = Runner(tmp_path)(program(), "--backend", "sanitizer", tools=ROWS, env=env)
    assert ran.code == 0, ran.err
    assert "another tool in this process has subscribed to the Compute Sanitizer" in ran.err
    assert "sanitizerPatchModule 0" in ran.out


def test_another_tool_of_the_driver_and_another_backend_are_refused(fakes: dict[str, str], tmp_path: Path) -> None:
    env = {**fakes, "CUDA_INJECTION64_PATH": "/opt/nsight/libToolsInjection64.so"}
    ran = Runner(tmp_path)(program(), "--backend", "sanitizer", tools=ROWS, env=env)
    assert ran.code == 2
    assert "CUDA_INJECTION64_PATH names /opt/nsight/libToolsInjection64.so" in ran.err
    for others in ("sanitizer+declared", "inductor+sanitizer"):
        ran = Runner(tmp_path)(program(), "--backend", others, tools=ROWS, env=fakes)
        assert ran.code == 2
        assert "another would report it twice; name it alone" in ran.err
    ran = Runner(tmp_path)(program(), "--backend", "sanitizer+monitor", tools=ROWS, env=fakes)
    assert ran.code == 0, ran.err
    assert len(ran.table("Rows", "launch")) == 4


def test_gpu_times_are_not_asked_for_and_the_report_says_so(fakes: dict[str, str], tmp_path: Path) -> None:
    ran = Runner(tmp_path)(program(), "--backend", "sanitizer", tools=ROWS, env=fakes)
    process = ran.profile.meta["processes"][0]
    assert "cannot share a process with CUPTI" in process["available"]["nvidia"]["message"]


def test_without_the_library_its_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEADLINE_SANITIZER_LIBRARY", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    if list(library_candidates()):
        pytest.skip("This machine's toolkit has the Compute Sanitizer.")
    assert "pip install nvidia-cuda-sanitizer-api" in why_not()


@pytest.mark.parametrize("folder", ["cu13/compute-sanitizer", "cu13/lib", "cuda_sanitizer_api/lib"])
def test_the_places_of_the_wheels_are_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str) -> None:
    monkeypatch.delenv("LEADLINE_SANITIZER_LIBRARY", raising=False)
    library = tmp_path / "nvidia" / folder / "libsanitizer-public.so"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert next(library_candidates()) == str(library)


def test_pages_that_cannot_be_counted_are_refused() -> None:
    assert page_sizes((65536, 4096, 2 << 20)) == ((4096, 65536, 2 << 20), 12)
    assert page_sizes((1 << 31, 1 << 33)) == ((1 << 31, 1 << 33), 31)
    for sizes in ((100,), (4096, 4097), (128, 256, 512, 1024, 2048)):
        with pytest.raises(ToolError, match="multiple of 128 bytes"):
            page_sizes(sizes)


def test_the_text_is_compiled_for_the_gpus_that_are_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 9.0\necho 8.0\necho 9.0\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert architectures() == (80, 90)
    monkeypatch.delenv("LEADLINE_SANITIZER_TEXT", raising=False)
    monkeypatch.setattr("leadline.tools.device_text.compilers", list)
    wants = Wants(frozenset({"touched"}), Ranges(), {})
    with pytest.raises(ToolError, match="GPUs of 2 kinds"):
        image(wants)
    with pytest.raises(ToolError, match="one `gpu` text in a run, not those of one, two"):
        image(Wants(frozenset({"count"}), Ranges(), {"one": "", "two": ""}))


def test_the_doctor_says_why_it_does_not_work_here() -> None:
    done = subprocess.run([sys.executable, "-m", "leadline", "doctor"], capture_output=True, text=True, check=False)
    assert "backend sanitizer" in done.stdout


__all__ = ["Ran", "vendor_fakes"]
