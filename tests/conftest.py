"""What every test run shares: a defined start whatever started it, and, with --strict-skips, no skip that hides a fault."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import may_skip

# Every profile that a test leaves behind must add up; what ran is recorded where LEADLINE_RECORD_RUN says so.
pytest_plugins = ["tests.truth.plugin", "tests.record_run", "tests.newer_numpy"]

DURATIONS = Path(__file__).with_name("durations.json")  # seconds of each test file, written by `make durations`
FORBIDDEN_SKIP = 6  # exit status, beside pytest's own: no second try of tests ends it
skipped: dict[str, str] = {}  # test or file: reason
passed_folders: set[str] = set()
took: defaultdict[str, float] = defaultdict(float)  # seconds, by file


# Inductor believes what the processor says of its instruction sets: it would compile a program for each and import torch
# once more to load it, for every folder of its cache. Nor does it start workers, which import torch, too: tests about them
# take this back.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

# Images for containers often forbid bytecode files: thousands of programs would compile JAX and Leadline anew each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# How long one example takes rests on what else runs here; each test has its limit.
with contextlib.suppress(ImportError):
    from hypothesis import settings

    settings.register_profile("here", deadline=None)
    settings.load_profile("here")


@pytest.fixture(autouse=True, scope="session")
def _sources_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Programs that tests write lie below their temporary folder, from where no profile is read in real life."""
    os.environ["LEADLINE_SOURCE_ROOT"] = f"{tmp_path_factory.getbasetemp()}:{os.getcwd()}"  # noqa: PTH109


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--strict-skips",
        action="store_true",
        help="fail when a test skips that tests/may_skip.py does not list, or a folder runs no test",
    )
    parser.addoption(
        "--durations-file", action="store_true", help="write how long each test file took; see `make durations`"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Programs that tests start get the signals' defaults, also below nohup, `&` and services, which ignore or block
    some: a signal that is handled here is the default again after exec."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first, so that no worker is left alone with one at the end."""
    try:
        known: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8"))
    except OSError:
        return
    root = DURATIONS.parent.parent

    def seconds(item: pytest.Item) -> float:  # tests of a folder elsewhere, as tests of these hooks run, are not known
        return known.get(item.path.relative_to(root).as_posix(), 1.0) if item.path.is_relative_to(root) else 1.0

    items.sort(key=lambda item: -seconds(item))  # stable: files stay whole


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """A session that a test leaves running costs that test only."""
    api = sys.modules.get("leadline.capture.api")
    session = None if api is None else api.CURRENT.session
    if session is not None and session.inner:
        with contextlib.suppress(Exception):
            session.stop()
        api.CURRENT.session = None


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        where = report.longrepr
        skipped[report.nodeid] = str(where[2] if isinstance(where, tuple) else where)
    if isinstance(report, pytest.TestReport):
        took[report.nodeid.partition("::")[0]] += report.duration
    if report.passed and isinstance(report, pytest.TestReport) and report.when == "call":
        parts = report.nodeid.split("/")
        passed_folders.add(parts[1] if len(parts) > 2 else "")


pytest_runtest_logreport = _note
pytest_collectreport = _note


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    """What a worker of xdist saw; skips of whole files never reach the controller by another way."""
    output = getattr(node, "workeroutput", {})
    skipped.update(output.get("skipped", {}))


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["skipped"] = dict(skipped)
        return (yield)
    if session.config.getoption("--durations-file"):
        rounded = {name: round(seconds, 1) for name, seconds in sorted(took.items()) if seconds >= 1.0}
        DURATIONS.write_text(json.dumps(rounded, indent=0) + "\n", encoding="utf-8")
    if session.config.getoption("--strict-skips") and _complaints():
        session.exitstatus = FORBIDDEN_SKIP
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not terminalreporter.config.getoption("--strict-skips"):
        return
    for complaint in _complaints():
        terminalreporter.write_line(complaint, red=True)


def _complaints() -> list[str]:
    allowed = may_skip.rows()
    found = [
        f"{test} may not skip here ({reason.removeprefix('Skipped: ')}); provide what it needs, or list it in tests/may_skip.py."
        for test, reason in sorted(skipped.items())
        if may_skip.excuse(test, reason, allowed) is None
    ]
    absent = sorted(set(may_skip.MUST_RUN) - passed_folders)
    return found + [f"tests/{folder}: no test passed; a whole run needs at least one." for folder in absent]
