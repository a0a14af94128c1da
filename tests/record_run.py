"""What was tested on which interpreter, as a file that `tools/tested.py` makes a table of.

A pytest plugin: where LEADLINE_RECORD_RUN names a folder, a run writes what passed and failed there, one file for each
combination of CPython, C library, processor and frameworks; a later run replaces the folders of tests/ that it ran.
As a program, `python tests/record_run.py SENTENCE` records a smoke test. Standard library only: it also runs where
nothing but Leadline is installed.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

VARIABLE = "LEADLINE_RECORD_RUN"
FRAMEWORKS = ("torch", "jax", "tensorflow")
_counts: dict[str, dict[str, Any]] = {}


def combination() -> dict[str, str]:
    """What this interpreter is and has; a framework that is not there is ''."""
    found = {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "release": platform.python_version(),
        "libc": " ".join(platform.libc_ver()) or "unknown",
        "machine": platform.machine(),
    }
    for name in FRAMEWORKS:
        found[name] = ""
        # TensorFlow has a second name without GPUs.
        for distribution in (name, f"{name}-cpu"):
            try:
                found[name] = importlib.metadata.version(distribution).partition("+")[0]
                break
            except importlib.metadata.PackageNotFoundError:
                continue
    return found


def update(folders: dict[str, dict[str, Any]], smoke: str = "") -> None:
    """Add to the record of this combination; nothing where VARIABLE is not set."""
    target = os.environ.get(VARIABLE)
    if not target:
        return
    now = combination()
    parts = [f"python-{now['python']}", now["libc"].replace(" ", "-"), now["machine"]]
    parts += [f"{name}-{now[name]}" for name in FRAMEWORKS if now[name]]
    path = Path(target) / ("_".join(parts) + ".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    date = datetime.date.today().isoformat()
    load = round(os.getloadavg()[1], 1)
    record.update(now)
    record["folders"] = {
        **record.get("folders", {}),
        **{name: {**one, "date": date, "load": load} for name, one in folders.items()},
    }
    if smoke:
        record["smoke"] = {"what": smoke, "date": date}
    record["folders"] = dict(sorted(record["folders"].items()))
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _note(report: Any) -> None:
    parts = report.nodeid.partition("::")[0].split("/")
    if parts[0] != "tests" or len(parts) < 3:
        return
    one = _counts.setdefault(parts[1], {"passed": 0, "failed": [], "skipped": 0})
    if report.failed:
        one["failed"].append(report.nodeid)
    elif report.skipped:
        one["skipped"] += 1
    elif getattr(report, "when", "") == "call":
        one["passed"] += 1


def pytest_runtest_logreport(report: Any) -> None:
    _note(report)


def pytest_collectreport(report: Any) -> None:
    if not report.passed:
        _note(report)


def pytest_sessionfinish(session: Any) -> None:
    """Only of the process that sees all reports, and only for folders that were run whole."""
    config = session.config
    chosen = config.getoption("keyword") or config.getoption("lf", False)
    if hasattr(config, "workeroutput") or chosen:
        return
    named = {part.split("::")[0].rstrip("/") for part in config.args}
    whole = {Path(one).name for one in named if Path(one).parent.name == "tests"}
    everything = not config.invocation_params.args or "tests" in {Path(one).name for one in named}
    update({name: one for name, one in _counts.items() if everything or name in whole})


if __name__ == "__main__":
    update({}, smoke=" ".join(sys.argv[1:]) or "smoke test")
