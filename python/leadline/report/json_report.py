"""The report as JSON with stable keys: docs/json-report.md explains them, json-report.schema.json checks them.

Keys are only ever added; FORMAT_VERSION grows when one changes its meaning. Times end in `_ns`, sizes in `_bytes`.
"""

from __future__ import annotations

import json
from typing import Any

from leadline._dataclass import asdict
from leadline.analysis.findings import as_object
from leadline.engines.as_json import serving_object
from leadline.report.model import CompiledProgram, CounterLine, Distribution, HotPath, Report, TimeSplit, WaitingLine
from leadline.report.steps import as_json
from leadline.verdict.model import as_object as verdict_object

FORMAT_VERSION = 1


def report_object(report: Report) -> dict[str, Any]:
    """The report as what `json.dumps` takes: dicts, lists, texts, finite numbers, booleans and None."""
    return {
        "format": {"name": "leadline-report", "version": FORMAT_VERSION},
        "meta": vars(report.meta),
        "totals": {name: vars(total) for name, total in report.totals.items()},
        "time_split": [_split(split) for split in report.splits],
        "sort": report.sort,
        "path_metric": report.path_metric,
        "focus": vars(report.focus) if report.focus else None,
        "paths": [_path(path) for path in report.paths],
        "functions": [vars(row) for row in report.functions],
        "operators": [
            {
                "name": row.name,
                "count": row.count,
                "time_ns": _distribution(row.time),
                "gpu_time_ns": row.gpu_time_ns,
                "alloc_bytes": row.alloc_bytes,
            }
            for row in report.operators
        ],
        "operator_calls": report.operator_calls,
        "modules": [vars(row) for row in report.modules],
        "phases": [vars(row) for row in report.phases],
        "memory": _memory(report),
        "gpu": _gpu(report),
        "programs": [_program(one) for one in report.programs],
        "waits": [one.text for one in report.waits],
        "counters": [{**vars(one), "lines": [_counter_line(line) for line in one.lines]} for one in report.counters],
        "waiting": [{**vars(one), "lines": [_waiting_line(line) for line in one.lines]} for one in report.waiting],
        "losses": [vars(loss) for loss in report.losses],
        "cost": vars(report.cost),
        "hidden": {
            "paths": report.paths_hidden,
            "threads": report.splits_hidden[0],
            "functions": report.functions_hidden,
            "waiting": report.waiting_hidden,
            "operators": report.operators_hidden,
            "modules": report.modules_hidden,
            "kernels": report.gpu.kernels_hidden if report.gpu else 0,
        },
        "next": list(report.next_commands),
        "findings": as_object(report.findings) if report.findings is not None else None,
        "ranks": _ranks(report),
        "verdict": verdict_object(report.verdict) if report.verdict else None,
        "start": asdict(report.start) if report.start else None,
        "steps": as_json(report.steps),
        "serving": serving_object(report.engine),
    }


def render_json(report: Report) -> str:
    """Pure ASCII, so that it survives any pipe; ends with a newline."""
    return json.dumps(report_object(report), indent=2, allow_nan=False) + "\n"


def _distribution(one: Distribution) -> dict[str, int | float]:
    return {"sum": one.sum, "self": one.self, "min": one.min, "max": one.max, "mean": one.mean, "std": one.std}


def _split(split: TimeSplit) -> dict[str, Any]:
    places = [{"part": one.part, **vars(one.place), "time_ns": one.time_ns} for one in split.places]
    return {**vars(split), "estimated": list(split.estimated), "places": places}


def _counter_line(line: CounterLine) -> dict[str, Any]:
    return {**vars(line.place), "count": line.count}


def _waiting_line(line: WaitingLine) -> dict[str, Any]:
    return {"state": line.state, **vars(line.place), "ns": line.ns}


def _path(path: HotPath) -> dict[str, Any]:
    return {
        "place": vars(path.place) if path.place else None,
        "module": path.module,
        "module_class": path.module_class,
        "modules": path.modules,
        "phase": path.phase,
        "operator": path.operator,
        "inner": path.inner,
        "calls": path.calls,
        "paths": path.paths,
        "callers": path.callers,
        "values": dict(path.values),
        "node": path.node,
        "ranks": vars(path.ranks) if path.ranks else None,
        "frames": [vars(frame) for frame in path.frames],
    }


def _memory(report: Report) -> dict[str, Any] | None:
    memory = report.memory
    if memory is None:
        return None
    return {
        "allocated_bytes": memory.allocated_bytes,
        "freed_bytes": memory.freed_bytes,
        "allocations": memory.allocations,
        "frees": memory.frees,
        "peaks": [
            {"device": peak.device, "peak_bytes": peak.peak_bytes, "paths": [_path(path) for path in peak.holders]}
            for peak in memory.peaks
        ],
        "allocators": [
            {"device": one.device, "name": one.name, "pools": [vars(pool) for pool in one.pools]}
            for one in memory.allocators
        ],
    }


def _program(program: CompiledProgram) -> dict[str, Any]:
    place = vars(program.place) if program.place else None
    buffers = [{**vars(held), "place": vars(held.place) if held.place else None} for held in program.buffers]
    return {**vars(program), "place": place, "buffers": buffers}


def _ranks(report: Report) -> dict[str, Any] | None:
    ranks = report.ranks
    if ranks is None:
        return None
    return {
        **vars(ranks),
        "spreads": [vars(one) for one in ranks.spreads],
        "late": [{**vars(one), "ranks": list(one.ranks)} for one in ranks.late],
        "lawful": list(ranks.lawful),
        "alone": list(ranks.alone),
        "arrival": list(ranks.arrival),
        "names": list(ranks.names),
        "rows": [{**vars(row), "values": list(row.values)} for row in ranks.rows],
    }


def _gpu(report: Report) -> dict[str, Any] | None:
    gpu = report.gpu
    if gpu is None:
        return None
    return {
        "work_ns": gpu.work_ns,
        "sync_ns": gpu.sync_ns,
        "devices": [{**vars(device), "busy": vars(device.busy) if device.busy else None} for device in gpu.devices],
        "kernels": [
            {"name": row.name, "kind": row.kind, "count": row.count, "gpu_time_ns": _distribution(row.gpu_time)}
            for row in gpu.kernels
        ],
        "counters": [vars(row) for row in gpu.counters],
        "scratch": [vars(row) for row in gpu.scratch],
        "links": [vars(row) for row in gpu.links],
    }
