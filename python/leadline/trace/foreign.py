"""What a JSON file is that holds no event of torch.profiler's, so that its refusal says what to give instead."""

from __future__ import annotations

import re

from leadline.trace.source import Source

_HEAD_BYTES = 1 << 16
_RECORD = "record it with torch.profiler and export_chrome_trace"
_KINDS: tuple[tuple[str, str, str], ...] = (
    (r'"viztracer_metadata"', "a trace of VizTracer", "Leadline reads none; profile the program with `leadline run`"),
    (r"speedscope\.app/file-format", "a profile of speedscope", "give what it was made from, or use `leadline run`"),
    (
        r'"schema"\s*:\s*"[\d.]+-chakra|"pytorch_et|"nodes"\s*:\s*\[',
        "an execution trace of PyTorch (graph of operators without their times)",
        "give the trace that export_chrome_trace wrote with it",
    ),
    (r'"/(host:CPU|device:\w+:\d+)', "XLA's trace for Perfetto", ""),
    (r'"ph"\s*:\s*"[BEbe]"', "a Chrome trace of another tool", _RECORD),
)


def refusal(source: Source) -> str:
    """What the file is and what to do, behind its name."""
    try:
        with source.open() as stream:
            head = stream.read1(_HEAD_BYTES).decode("utf-8", "replace")  # type: ignore[attr-defined]
    except (OSError, EOFError):
        head = ""
    if source.name.startswith("perfetto_trace.json"):
        return _of_xla(source)
    for pattern, kind, instead in _KINDS:
        if re.search(pattern, head):
            return (
                f"is {kind} and holds no operator, API call or kernel of torch.profiler; {instead}"
                if instead
                else _of_xla(source)
            )
    return f"holds no operator, API call or kernel; {_RECORD}"


def _of_xla(source: Source) -> str:
    folder = source.path.parent if source.path else source.folder
    beside = sorted(one.name for one in folder.glob("*.xplane.pb")) if folder else []
    instead = f"give {beside[0]} of the same folder" if beside else "give the .xplane.pb file of the same folder"
    return f"is what XLA's profiler writes for Perfetto, without programs and lines; {instead}"
