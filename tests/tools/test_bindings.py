"""Bindings release the GIL: who waits in one for a lock that is held over device work would freeze all of Python.

Those that keep it are listed here. They return at once: each reads or writes what no thread holds for long.
"""

from __future__ import annotations

import re
from pathlib import Path

BINDINGS = Path(__file__).parents[2] / "native/bindings"
RELEASES = re.compile(r"gil_scoped_release|without_gil\(|answered\(|\bprovider_st(?:art|op)\(|return start\(options")
OF_EVENTS = {"region_begin", "region_end", "region_suspend", "phase_begin", "phase_end", "waited", "optimizer_follows", "step", "step_begin",
             "place", "book", "thread_place", "timed", "count_loss", "now_ns", "callpath"}  # fmt: skip
"""Called for each event, where releasing would cost more than the event."""
OF_PYTHON = {"add_openers", "hide_folder", "anchor_calls_of", "release_calls_of", "anchor_method",
             "release_method", "check_walks", "module_register", "module_name", "module_forget", "module_forget_all",
             "frame_layout", "refusal_of_shifted", "when_fork_is_over", "gpu_kernel_source", "gpu_kernel_user", "instances_of"}  # fmt: skip
"""They work on objects of Python's."""
OF_NUMBERS = {"is_running", "stats", "trace_take_back", "trace_start", "trace_is_open", "trace_stop", "trace_steps",
              "announce_window", "share_window", "flight_announce", "flight_announced", "flight_attached",
              "flight_standing_ns", "flight_done", "flight_usual", "explain_program", "explain_operation", "titled_runs",
              "describe_device", "refused_counters", "published_place", "path_of", "__init__", "start", "drain", "objects",
              "launches", "touched", "instructions", "done", "name", "problem", "without_tma", "lost", "lost_objects",
              "skipped", "under_way", "add", "walk"}  # fmt: skip
"""They read or set a few values of their own."""
OF_FORKS = {"after_fork_in_parent", "after_fork"}
"""In the child there is one thread; in the parent they undo what `before_fork` did."""
KEEP_IT = OF_EVENTS | OF_PYTHON | OF_NUMBERS | OF_FORKS


def keeping(source: str) -> list[str]:
    """Functions and methods of a file of bindings that nowhere release the GIL."""
    found = []
    for definition in re.split(r'(?=\.def\(\s*")', source)[1:]:
        name, function = re.findall(r'^\.def\(\s*"(\w+)",\s*(?:&([\w:]+)\s*[,)])?', definition)[0]
        text = definition
        if function:
            bare = re.escape(function.rpartition(":")[2])
            body = re.search(
                rf"^[\w:<>\s&*]+\b{bare}\([^;{{]*\)\s*(?:noexcept\s*)?\{{.*?\n\}}", source, re.DOTALL | re.MULTILINE
            )
            text += body[0] if body else ""
        if not RELEASES.search(text):
            found.append(name)
    return found


def test_a_binding_releases_the_gil_or_is_listed_as_one_that_returns_at_once() -> None:
    kept = {name for file in sorted(BINDINGS.glob("*.cpp")) for name in keeping(file.read_text())}
    assert kept - KEEP_IT == set()
    assert KEEP_IT - kept == set(), "listed and no longer there, or releases it now"


def test_a_binding_that_waits_with_the_gil_is_found() -> None:
    assert keeping('nb::dict asks() {\n  return ask();\n}\nm.def("asks", &asks);') == ["asks"]
    assert keeping('nb::dict asks() {\n  return without_gil(ask);\n}\nm.def("asks", &asks);') == []
    assert keeping('m.def("asks", [] { return ask(); });\nm.def("waits", [] { gil_scoped_release no; });') == ["asks"]
