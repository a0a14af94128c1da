"""AMD GPUs: driver (KFD), permissions, devices, ROCm, rocprofiler-sdk and its copies, who else is its tool.

Reads files only: it never loads HIP or the SDK, so it works beside a program that holds the devices.
"""

from __future__ import annotations

import grp
import os
from collections.abc import Iterator
from pathlib import Path

from leadline.capture.providers.amd.files import (
    TOOL_LIBRARY,
    TOOL_VARIABLE,
    older_candidates,
    sdk_candidates,
    tool_library,
)
from leadline.cli.checks import FAILED, LIMITED, OK, Finding

TITLE = "AMD GPU"
ROOT = Path("/")
"""Of the machine that is looked at; tests look at a made-up one."""
_GROUPS = ("render", "video")
_OLDEST = (6, 2)
_SAMPLING_VARIABLE = "ROCPROFILER_PC_SAMPLING_BETA_ENABLED"


def check() -> list[Finding]:
    """See `leadline.cli.checks`. No AMD GPU is no fault; one that cannot be measured is."""
    driver = ROOT / "dev/kfd"
    module = _read("sys/module/amdgpu/version") or _read("sys/module/amdgpu/srcversion")
    devices = list(_devices())
    if not driver.exists():
        if not module and not devices:
            return [Finding("driver", LIMITED, "none can be used here: no AMD GPU driver (/dev/kfd is missing)")]
        advice = "load it (modprobe amdgpu); in a container pass --device /dev/kfd --device /dev/dri"
        return [Finding("driver", FAILED, "the driver amdgpu is loaded, but /dev/kfd is missing", advice)]
    findings = [Finding("driver", OK, f"amdgpu {module}".strip() + ", /dev/kfd")]
    findings += [_permission(driver), _shown(devices), *_levels(), *_visible(), _rocm()]
    return [*findings, *_sdk({name for name, _ in devices}), _tools()]


def _read(name: str) -> str:
    try:
        return (ROOT / name).read_text().strip()
    except OSError:
        return ""


def _permission(driver: Path) -> Finding:
    if os.access(driver, os.R_OK | os.W_OK):
        return Finding("permission", OK, "this user may open /dev/kfd")
    mine = {*os.getgroups(), os.getegid()}
    missing = [name for name in _GROUPS if _group(name) not in mine]
    advice = f"usermod -aG {','.join(missing or _GROUPS)} $USER, then log in again"
    return Finding("permission", FAILED, "this user may not open /dev/kfd, so programs see no device", advice)


def _group(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return -1


def _devices() -> Iterator[tuple[str, str]]:
    """Architecture and partition mode of each device."""
    for name, render in _topology():
        yield name, _read(f"{render}/current_compute_partition")


def _topology() -> Iterator[tuple[str, str]]:
    """Architecture of each device of the driver's topology and the folder of its settings; nodes without SIMDs are
    processors."""
    nodes = ROOT / "sys/class/kfd/kfd/topology/nodes"
    for node in sorted(nodes.glob("*"), key=lambda path: (len(path.name), path.name)):
        try:
            properties = dict(line.split() for line in (node / "properties").read_text().splitlines() if " " in line)
        except (OSError, ValueError):
            continue
        if int(properties.get("simd_count", 0)) == 0:
            continue
        target = int(properties.get("gfx_target_version", 0))
        name = f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}"
        minor = properties.get("drm_render_minor", "")
        yield name, f"sys/class/drm/renderD{minor}/device"


def _levels() -> Iterator[Finding]:
    """How clocks are governed, which times of kernels depend on."""
    levels = [_read(f"{render}/power_dpm_force_performance_level") for _, render in _topology()]
    known = sorted({level for level in levels if level})
    if not known:
        return
    shown = ", ".join(f"{level} ({levels.count(level)})" for level in known) if len(known) > 1 else known[0]
    if set(known) <= {"auto", "high"}:
        yield Finding("performance level", OK, f"{shown}: clocks follow load and temperature")
    elif all(level.startswith("profile_") for level in known):
        yield Finding("performance level", OK, f"{shown}: clocks are held below their peak, so runs can be compared")
    else:
        text = f"{shown}: clocks are held below the devices' maximum, so kernels take longer"
        yield Finding("performance level", LIMITED, text, "rocm-smi --setperflevel auto")


def _shown(devices: list[tuple[str, str]]) -> Finding:
    if not devices:
        return Finding("devices", LIMITED, "the driver shows none", "see `rocminfo` and `dmesg | grep amdgpu`")
    kinds = sorted(set(devices))
    parts = [f"{devices.count(kind)} {kind[0]}" + (f" in mode {kind[1]}" if kind[1] else "") for kind in kinds]
    return Finding("devices", OK, ", ".join(parts))


def _visible() -> Iterator[Finding]:
    hip = os.environ.get("HIP_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES"))
    rocr = os.environ.get("ROCR_VISIBLE_DEVICES")
    if hip == "" or rocr == "":
        yield Finding("visible", LIMITED, "an empty list hides every device", "unset it")
    elif hip is not None and rocr is not None:
        text = f"HIP's list ({hip}) selects among the devices of ROCR_VISIBLE_DEVICES ({rocr}) leaves"
        yield Finding("visible", LIMITED, text, "set one of them only, best ROCR_VISIBLE_DEVICES")


def _rocm() -> Finding:
    for folder in (os.environ.get("ROCM_PATH", "").lstrip("/"), "opt/rocm"):
        version = _read(f"{folder}/.info/version") if folder else ""
        if not version:
            continue
        numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2] if part.isdigit())
        if numbers < _OLDEST:
            text = f"{version} is older than rocprofiler-sdk, so roctracer is used where it is found"
            return Finding("ROCm", LIMITED, text, "install ROCm 6.2 or later")
        return Finding("ROCm", OK, f"{version} in /{folder}")
    return Finding("ROCm", LIMITED, "no installation in /opt/rocm or ROCM_PATH; a program's own copy is used")


def _sdk(architectures: set[str]) -> Iterator[Finding]:
    found: dict[str, str] = {}
    for path in sdk_candidates():
        if os.sep in path:
            found.setdefault(str(Path(path).resolve()), path)
    if not found:
        advice = "install the package rocprofiler-sdk of ROCm 6.2 or later"
        older = next((path for path in older_candidates() if os.sep in path), "")
        if older:
            text = f"not found; {older} reports kernels, copies, waits and memory, but no grids, registers or counters"
            yield Finding("rocprofiler-sdk", LIMITED, text, advice)
        else:
            yield Finding("rocprofiler-sdk", FAILED, "not found; kernels and copies cannot be measured", advice)
        return
    first, *others = found.values()
    yield Finding("rocprofiler-sdk", OK, f"{first}: kernels, copies, waits, memory, graphs and roctx ranges")
    if others:
        text = f"{len(found)}: {', '.join(found.values())}; a process that loads two records part of its work in each"
        yield Finding("copies of rocprofiler-sdk", LIMITED, text, "make sure that programs load one of them only")
    yield _instructions(architectures)
    yield Finding("counters", OK, "`leadline run --gpu-metrics` reads them launch by launch, one after the other")


def _instructions(architectures: set[str]) -> Finding:
    """By what each generation has: reasons by hardware, places by traps, nothing."""
    how = {name: "with reasons" for name in architectures if name.startswith(("gfx94", "gfx95"))}
    how |= dict.fromkeys(architectures & {"gfx90a"}, "without reasons")
    if not how:
        return Finding("instructions", LIMITED, "are not sampled on these devices (MI200 and later have a way to)")
    text = ", ".join(f"{name} {way}" for name, way in sorted(how.items()))
    if os.environ.get(_SAMPLING_VARIABLE, "") not in ("", "0"):
        return Finding("instructions", OK, f"`leadline run --instructions` samples {text}")
    advice = f"AMD warns that this beta may freeze a device; set {_SAMPLING_VARIABLE}=1 to use it"
    return Finding("instructions", LIMITED, f"could be sampled ({text}), and the SDK does not permit it", advice)


def _tools() -> Finding:
    if tool_library() is None:
        advice = "install leadline again with pip"
        return Finding("start of HIP", LIMITED, f"this installation has no {TOOL_LIBRARY}", advice)
    named = [path for path in os.environ.get(TOOL_VARIABLE, "").split(":") if path]
    others = [path for path in named if Path(path).name != TOOL_LIBRARY]
    if missing := [path for path in named if not Path(path).exists()]:
        text = (
            f"{TOOL_VARIABLE} names {missing[0]}, which does not exist: rocprofiler-sdk ends programs because of that"
        )
        return Finding("start of HIP", FAILED, text, f"unset {TOOL_VARIABLE}")
    if others:
        return Finding("start of HIP", OK, f"the SDK reports it under `leadline run`, as for {', '.join(others)}")
    return Finding("start of HIP", OK, "the SDK reports it under `leadline run`")
