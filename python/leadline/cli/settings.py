"""Options of `leadline run`, `why` and `attach` from `[tool.leadline]` of the pyproject.toml of the working directory.

Constraint: only options that say what is measured. A project that somebody else has written must not choose files to
write, code to load or addresses to open.
"""

from __future__ import annotations

from pathlib import Path

from leadline.cli.errors import CommandError

_FILE = "pyproject.toml"
_READERS = frozenset({"run", "why", "attach"})
_OPTIONS = {
    "run": frozenset(
        {
            "budget", "counter", "cpu-sample", "duty", "flush-interval", "hang-after", "keep-old", "max-nodes",
            "native", "no-cpu-sample", "no-follow", "no-memory", "nvtx", "os-trace", "quiet", "shapes", "trace",
            "trace-max-events", "wait",
        }
    ),
    "why": frozenset({"no-shapes", "seconds", "steps"}),
    "attach": frozenset(
        {"counter", "cpu-sample", "native", "no-memory", "quiet", "seconds", "shapes", "trace", "wait"}
    ),
}  # fmt: skip


def from_pyproject(subcommand: str, folder: Path | None = None) -> list[str]:
    """The words that stand before those that were typed, so that typed ones win: of `[tool.leadline]` for `run`, of
    `[tool.leadline.why]` and `[tool.leadline.attach]`.

    Raises CommandError for what cannot be read, or is no option that a project may set.
    """
    if subcommand not in _READERS:
        return []
    try:
        text = ((folder or Path()) / _FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    if "[tool.leadline" not in text:
        return []
    try:
        import tomllib
    except ImportError:  # Python 3.10
        return []
    try:
        table = tomllib.loads(text).get("tool", {}).get("leadline", {})
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"{_FILE} cannot be read: {error}.") from None
    if subcommand != "run":
        table = table.get(subcommand, {})
    words: list[str] = []
    for name, value in table.items():
        if isinstance(value, dict):
            continue
        if name not in _OPTIONS[subcommand]:
            known = ", ".join(sorted(_OPTIONS[subcommand]))
            raise CommandError(f"{_FILE} cannot set {name!r} of `leadline {subcommand}`; it can set: {known}.")
        if value is True:
            words.append(f"--{name}")
        elif value is not False:
            words += [f"--{name}={one}" for one in (value if isinstance(value, list) else [value])]
    return words
