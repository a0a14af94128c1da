"""The places in JAX that this project holds on to, by what the installed release has. Imports nothing of JAX by itself.

Most are private to JAX, so each look-up answers with None where a release has it no more, and the provider goes on
without what needs it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

OLDEST = (0, 5)
"""First release that the hooks below are known in."""


def member(path: str) -> Any:
    """`jax._src.api._post_hook_state` and the like; None where this release has no such thing."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        found: Any = sys.modules.get(".".join(parts[:end]))
        if found is None:
            continue
        for name in parts[end:]:
            found = getattr(found, name, None)
            if found is None:
                break
        if found is not None:
            return found
    return None


def first(*paths: str) -> Any:
    """The first of these that there is."""
    return next((found for path in paths if (found := member(path)) is not None), None)


def runtime() -> Any:
    """jaxlib's own module: `_jax`, or `xla_extension` up to 0.6."""
    return first("jax._src.lib._jax", "jaxlib._jax", "jax._src.lib.xla_extension", "jaxlib.xla_extension")


def profiler() -> Any:
    """The module with ProfilerSession, ProfileOptions and TraceMe."""
    return first(
        "jaxlib._profiler", "jax._src.lib._profiler", "jaxlib.xla_extension.profiler", "jaxlib.xla_client.profiler"
    )


def is_profiling() -> bool:
    """Whether any profiler session of this process records."""
    asked = getattr(getattr(profiler(), "TraceMe", None), "is_enabled", None)
    return bool(asked()) if callable(asked) else False


def clients() -> list[Any]:
    """The backends that the program has initialised; asking initialises none."""
    known = member("jax._src.xla_bridge._backends")
    return list(known.values()) if isinstance(known, dict) else []


def callers(executable: Any) -> list[tuple[str, str]]:
    """(file, function) of the Python frames on which a program was compiled, outermost first, without JAX's own."""
    file = getattr(sys.modules.get("jax"), "__file__", None)
    frames = getattr(getattr(executable, "traceback", None), "frames", None)
    if file is None or frames is None:
        return []
    folders = (f"{Path(file).parent}/", f"{Path(__file__).parent}/")
    told = [(str(frame.file_name), str(frame.function_name)) for frame in reversed(frames)]
    return [one for one in told if not one[0].startswith(folders)]


def process() -> tuple[int, int] | None:
    """This process's number and how many there are, once the program has called `jax.distributed.initialize`."""
    state = member("jax._src.distributed.global_state")
    if getattr(state, "client", None) is None:
        return None
    number, every = getattr(state, "process_id", None), getattr(state, "num_processes", None)
    return (number, every) if isinstance(number, int) and isinstance(every, int) else None
