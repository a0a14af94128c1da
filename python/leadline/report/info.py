"""What a file says of itself: who wrote it, what was measured, which tables it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leadline.analysis.ranks import RankView, is_folded_profile, ranges
from leadline.profiles import Profile
from leadline.report import provenance
from leadline.report.source import visible
from leadline.schema import TABLES
from leadline.units import duration, number, size


def facts(profile: Profile, file: str) -> dict[str, Any]:
    """Stable keys; times in ns, sizes in bytes."""
    meta = provenance.meta(profile, file)
    found: dict[str, Any] = {
        "file": file,
        "file_bytes": Path(file).stat().st_size,
        "format_version": profile.meta["format"]["version"],
        "leadline": meta.leadline,
        "program": meta.program,
        "started_at": meta.started_at,
        "wall_ns": meta.wall_ns,
        "host": meta.host,
        "python": meta.python,
        "frameworks": list(meta.frameworks),
        "asked": meta.asked,
        "complete": meta.complete,
        "processes": meta.processes,
        "threads": meta.threads,
        "ranks": sorted({one.rank for one in profile.processes if one.rank >= 0}),
        "metrics": [str(info.kind) for info in profile.tree.measured],
        "window_steps": list(profile.window.steps),
        "losses": sum(one.count for one in profile.losses),
        "rows": {name: profile.tables.rows(name) for name in TABLES if profile.tables.rows(name)},
        "redacted": list(profile.meta.get("redacted") or ()),
    }
    if is_folded_profile(profile):
        view = RankView(profile)
        fold = profile.meta.get("fold")
        found["ranks"] = [rank.rank for rank in view.ranks]
        found["folded_by"] = fold.get("by") if isinstance(fold, dict) else ""
        found["missing"] = view.missing
    return found


def info_text(found: dict[str, Any]) -> str:
    """One fact a line."""
    ranks = f"{number(len(found['ranks']))} ({ranges(found['ranks'])})" if found["ranks"] else ""
    if "folded_by" in found:
        ranks += f", folded by {found['folded_by']}" + (
            f"; missing: {ranges(found['missing'])}" if found["missing"] else ""
        )
    steps = found["window_steps"]
    interpreter = f"Python {found['python']}" if found["python"] else ""
    written = f"format {found['format_version']}, written by leadline {found['leadline']}"
    lines = [
        ("program", found["program"]),
        ("when", f"{found['started_at']}, {duration(found['wall_ns'])}".strip(", ")),
        ("where", found["host"]),
        (
            "with",
            ", ".join(filter(None, [interpreter, *found["frameworks"]])),
        ),
        ("options", found["asked"]),
        ("ended", "normally" if found["complete"] else "killed or crashed: data after the last flush is missing"),
        ("processes", f"{number(found['processes'])}, {number(found['threads'])} threads"),
        ("ranks", ranks),
        ("metrics", ", ".join(found["metrics"])),
        ("window", f"steps {ranges(steps)}" if steps else ""),
        ("losses", number(found["losses"]) if found["losses"] else "none"),
        ("redacted", ", ".join(found["redacted"])),
        ("rows", ", ".join(f"{number(rows)} {name.replace('_', ' ')}" for name, rows in found["rows"].items())),
        (
            "file",
            f"{size(found['file_bytes'])}, {written}",
        ),
    ]
    return "\n".join(f"{name:<10}{visible(str(text))}" for name, text in lines if text)
