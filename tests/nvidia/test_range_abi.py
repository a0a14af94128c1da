"""Our declarations of CUPTI's counters of replayed kernels against the vendor's headers, and the metrics against what
CUPTI says of its chips."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.nvidia.test_abi import RELEASES, ROOT, compile_ok, headers
from tests.nvidia.test_pm_sampling_abi import CHIPS, chosen

R = "CUpti_RangeProfiler_"
_IMAGE = {"image": "pCounterDataImage", "bytes": "counterDataImageSize"}
STRUCTURES = {
    "ContextAvailability": (
        "CUpti_Profiler_GetCounterAvailability_Params",
        {"context": "ctx", "bytes": "counterAvailabilityImageSize", "image": "pCounterAvailabilityImage"},
    ),
    "RangeEnable": (R + "Enable_Params", {"context": "ctx", "profiler": "pRangeProfilerObject"}),
    "RangeObject": (R + "Start_Params", {"profiler": "pRangeProfilerObject"}),
    "RangeConfigure": (
        R + "SetConfig_Params",
        {"profiler": "pRangeProfilerObject", "config_bytes": "configSize", "config": "pConfig",
         "bytes": "counterDataImageSize", "image": "pCounterDataImage", "range": "range", "replay": "replayMode",
         "most": "maxRangesPerPass", "levels": "numNestingLevels", "least_level": "minNestingLevel",
         "pass": "passIndex", "target_level": "targetNestingLevel"},
    ),
    "RangeStop": (
        R + "Stop_Params",
        {"profiler": "pRangeProfilerObject", "pass": "passIndex", "target_level": "targetNestingLevel",
         "complete": "isAllPassSubmitted"},
    ),
    "RangeDecode": (R + "DecodeData_Params", {"profiler": "pRangeProfilerObject", "dropped": "numOfRangeDropped"}),
    "RangeImageSize": (
        R + "GetCounterDataSize_Params",
        {"profiler": "pRangeProfilerObject", "names": "pMetricNames", "count": "numMetrics", "most": "maxNumOfRanges",
         "nodes": "maxNumRangeTreeNodes", "bytes": "counterDataSize"},
    ),
    "RangeImage": (
        R + "CounterDataImage_Initialize_Params",
        {"profiler": "pRangeProfilerObject", "bytes": "counterDataSize", "image": "pCounterData"},
    ),
    "RangeImageInfo": (R + "GetCounterDataInfo_Params", {**_IMAGE, "ranges": "numTotalRanges"}),
    "RangeInfo": (
        R + "CounterData_GetRangeInfo_Params",
        {**_IMAGE, "index": "rangeIndex", "delimiter": "rangeDelimiter", "name": "rangeName"},
    ),
}  # fmt: skip
GROWN = ("ContextAvailability", "RangeEnable")
"""Structures that have more fields behind ours in 13.5; CUPTI goes by the size that they are handed with."""
SIZES = {"RangeConfigure": "ours::kRangeConfigureBytes", "RangeStop": "ours::kRangeStopBytes"}
"""Those that are filled up behind their last field."""
NUMBERS = {
    "RangeKind::kEachKernel": "CUPTI_AutoRange",
    "RangeKind::kByHand": "CUPTI_UserRange",
    "Replay::kApplication": "CUPTI_ApplicationReplay",
    "Replay::kKernel": "CUPTI_KernelReplay",
    "Replay::kByHand": "CUPTI_UserReplay",
}
_VENDORS = ("cupti.h", "cupti_target.h", "cupti_profiler_target.h", "cupti_range_profiler.h")


@pytest.mark.parametrize("release", RELEASES)
def test_arguments_and_numbers_are_the_vendors(tmp_path: Path, release: str) -> None:
    where = headers(release)
    lines = [f"#include <{header}>" for header in _VENDORS]
    lines += ['#include "providers/nvidia/range_abi.h"', "#include <cstddef>"]
    lines.append("namespace ours = leadline::nvidia::cupti;")
    for our, (their, fields) in STRUCTURES.items():
        size = SIZES.get(our, f"sizeof(ours::{our})")
        same = "<=" if our in GROWN and where.major >= 13 else "=="
        lines.append(f'static_assert({size} {same} {their}_STRUCT_SIZE, "{our}");')
        for ours, theirs in {"size": "structSize", "reserved": "pPriv", **fields}.items():
            lines.append(f"static_assert(offsetof(ours::{our}, {ours}) == offsetof({their}, {theirs}));")
            lines.append(f"static_assert(sizeof(((ours::{our}*)0)->{ours}) == sizeof((({their}*)0)->{theirs}));")
    lines += [f"static_assert(int(ours::{our}) == int({theirs}));" for our, theirs in NUMBERS.items()]
    compile_ok(tmp_path, "\n".join(lines), where.cupti, where.cuda)


@pytest.mark.parametrize("release", RELEASES)
def test_the_library_has_every_function(release: str) -> None:
    library = headers(release).library.read_bytes()
    source = (ROOT / "native/providers/nvidia/cupti_library.cpp").read_text()
    names = [line.split('"')[1] for line in source.splitlines() if "bind(library" in line and ", r." in line]
    assert len(names) == 11
    assert [name for name in names if f"\0{name}\0".encode() not in library] == []


def test_every_chip_counts_everything_where_kernels_are_run_again(tmp_path: Path) -> None:
    """By CUPTI's own plan for each chip, with the kernel's duration beside them."""
    everything = {"occupancy", "dram", "tensor", "l2", "issue", "shared", "global"}
    assert chosen(tmp_path, "--replay") == dict.fromkeys(CHIPS, everything)
