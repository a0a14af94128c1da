"""NVTX ranges of real programs: through NVTX's own Python package, and through the C header where it is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.losses import counts_by_kind

from leadline.profiles import Profile, open_profile

PYTHON_PROGRAM = """
import sys, threading
import leadline
with leadline.profile(sys.argv[1], quiet=True):
    import nvtx
    def inner():
        with nvtx.annotate("inner", domain="mine", category="math", color="red", payload=7):
            sum(range(1000))
    with nvtx.annotate("outer"):
        inner()
        inner()
    with nvtx.annotate("quiet", domain="NCCL"):
        pass
    for step in range(40):
        with nvtx.annotate("varying", payload=step):
            pass
    started = nvtx.start_range("crossing")
    other = nvtx.start_range("overlapping")
    nvtx.end_range(started)
    nvtx.end_range(other)
    handed = nvtx.start_range("handed over")
    thread = threading.Thread(target=lambda: nvtx.end_range(handed))
    thread.start(); thread.join()
    nvtx.mark("a mark")
    @nvtx.annotate("decorated")
    def decorated():
        pass
    decorated()
"""

C_PROGRAM = r"""
#include <nvtx3/nvToolsExt.h>
extern "C" __attribute__((visibility("default"))) int ranges(void) {
  nvtxRangePushA("ascii");
  nvtxRangePushW(L"gr\u00f6\u00dfe");
  nvtxRangePop();
  nvtxRangePop();
  nvtxDomainHandle_t domain = nvtxDomainCreateW(L"wide");
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered");
  nvtxDomainNameCategoryA(domain, 5, "five");
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = 5;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = text;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  attributes.payload.dValue = 0.5;
  nvtxDomainRangePushEx(domain, &attributes);
  nvtxDomainRangePop(domain);
  nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, &attributes);
  nvtxDomainRangeEnd(domain, id);
  return nvtxRangePop();
}
"""


def profile_of(tmp_path: Path, program: str, *arguments: str, **environment: str) -> Profile:
    script = tmp_path / "program.py"
    script.write_text(program)
    output = tmp_path / "out.leadline"
    command = [sys.executable, str(script), str(output), *arguments]
    result = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return open_profile(output)


def regions(profile: Profile) -> dict[str, tuple[int, dict[str, Any]]]:
    """Name to (calls, detail), over all places."""
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for node in profile.tree.find(kind="region"):
        calls = node.exclusive("call_time").count
        found[node.name] = (found.get(node.name, (0, {}))[0] + calls, node.detail)
    return found


def test_ranges_of_a_python_program_become_regions(tmp_path: Path, inject: Path) -> None:
    if importlib.util.find_spec("nvtx") is None:
        pytest.skip("Needs the package nvtx, not installed here.")
    profile = profile_of(tmp_path, PYTHON_PROGRAM, NVTX_INJECTION64_PATH=str(inject))
    found = regions(profile)
    assert found["outer"][0] == 1
    assert found["inner"][0] == 2
    assert found["inner"][1]["domain"] == "mine" and found["inner"][1]["category"] == "math"
    assert found["inner"][1]["payload"] == 7
    assert "quiet" not in found  # a library's domain
    assert found["varying"][0] == 40
    assert found["crossing"][0] == 1 and found["overlapping"][0] == 1
    by_name = {node.name: node for node in profile.tree.find(kind="region")}
    lines = dict(enumerate(PYTHON_PROGRAM.splitlines(), 1))
    for name, text in (("outer", 'nvtx.annotate("outer")'), ("decorated", "    decorated()")):
        region = by_name[name]
        assert region.file.endswith("program.py") and text in lines[region.line]
    assert not [node for node in profile.tree.walk() if node.file.endswith("nvtx.py")]
    inner = next(node for node in profile.tree.find(kind="region") if node.name == "inner")
    assert "outer" in [step.name for step in inner.path()]
    places = [node for node in profile.tree.find(kind="region") if node.name == "varying"]
    assert len(places) <= 33  # distinct payloads stop making distinct places
    assert counts_by_kind(profile) == {"range_unordered": 2}  # crossing, and the one handed to another thread
    status = profile.meta["processes"][0]["available"]["nvidia"]["nvtx"]
    assert status["marks"] == 1
    assert status["domains"]["NCCL"] == {"ranges": 1, "skipped": True, "titles": 0}


@pytest.mark.parametrize("shown", ["nccl", "XLA,NCCL", "all"])
def test_ranges_of_a_library_show_when_asked_for(tmp_path: Path, inject: Path, shown: str) -> None:
    if importlib.util.find_spec("nvtx") is None:
        pytest.skip("Needs the package nvtx, not installed here.")
    program = PYTHON_PROGRAM.replace("quiet=True", f"quiet=True, nvtx={shown!r}")
    assert regions(profile_of(tmp_path, program, NVTX_INJECTION64_PATH=str(inject)))["quiet"][0] == 1


def test_all_spellings_of_the_c_header(tmp_path: Path, inject: Path) -> None:
    spec = importlib.util.find_spec("nvidia")
    includes = [Path(place, "cu13", "include") for place in (spec.submodule_search_locations or [])] if spec else []
    include = next((path for path in includes if (path / "nvtx3" / "nvToolsExt.h").exists()), None)
    compiler = shutil.which("g++")
    if include is None or compiler is None:
        pytest.skip("Needs the package nvidia-nvtx (its headers) and g++, not installed here.")
    source = tmp_path / "ranges.cpp"
    source.write_text(C_PROGRAM)
    library = tmp_path / "libranges.so"
    subprocess.run([compiler, "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(library), "-ldl"], check=True)
    program = (
        "import ctypes, sys, leadline\n"
        "with leadline.profile(sys.argv[1], quiet=True):\n"
        "    assert ctypes.CDLL(sys.argv[2]).ranges() < 0\n"  # a pop without its push
    )
    profile = profile_of(tmp_path, program, str(library), NVTX_INJECTION64_PATH=str(inject))
    found = regions(profile)
    assert set(found) == {"ascii", "größe", "registered"}
    assert found["registered"] == (2, {"domain": "wide", "category": "five", "payload": 0.5})


def test_the_users_own_injection_is_left_alone(tmp_path: Path) -> None:
    program = (
        "import os, sys, leadline\n"
        "with leadline.profile(sys.argv[1], quiet=True):\n    pass\n"
        "assert os.environ['NVTX_INJECTION64_PATH'] == '/other/tool.so'\n"
    )
    profile = profile_of(tmp_path, program, NVTX_INJECTION64_PATH="/other/tool.so")
    (loss,) = [loss for loss in profile.losses if loss.count > 0]
    assert "names another tool (/other/tool.so)" in loss.detail
