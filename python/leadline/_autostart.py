"""Starts measuring in a process that has LEADLINE in its environment; imported by `leadline.pth` while Python starts.

Promise: the program runs whatever happens here. A process without the variable never imports this file.
"""

from __future__ import annotations

import importlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HELPERS = ("from multiprocessing.resource_tracker import main", "from multiprocessing.semaphore_tracker import main")
"""Bookkeeping processes of the standard library: they run no line of the user's program."""


def start_from_environment() -> None:
    """Join the session named in the environment, or begin one as its owner; every problem becomes one sentence."""
    if any(argument.startswith(_HELPERS) for argument in sys.orig_argv):
        return
    if _in_subinterpreter():
        return  # the main interpreter's session covers the process; what runs here is not measured
    from leadline.capture.errors import ProfileError

    try:
        if not os.environ.get("LEADLINE_TRIAL") or _in_trial():
            _start()
    except ProfileError as error:
        _not_measured(str(error))
    except Exception as error:
        _not_measured(f"Measuring could not start: {type(error).__name__}: {error}.")


def _in_trial() -> bool:
    """A run of `leadline try`: its change is made before the program imports a framework. Whether it is measured as
    well."""
    from leadline.remedies.start import start_from_environment as start

    start()
    return os.environ["LEADLINE"] != "trial"


def _in_subinterpreter() -> bool:
    """Python imports `site` in each sub-interpreter anew, and so this file."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # since 3.13, and before
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        return bool(module.get_current() != module.get_main())
    return False


def _start() -> None:
    from pathlib import Path

    from leadline.capture.config import OPTIONS_VARIABLE, OUTPUT_VARIABLE, SESSION_VARIABLE, VARIABLES, Options
    from leadline.capture.part import PartDirectory
    from leadline.capture.records import StartedBy
    from leadline.capture.session import Session

    output = Path(os.environ[OUTPUT_VARIABLE])
    text = os.environ.get(OPTIONS_VARIABLE)
    options = Options.from_json(text) if text else Options()
    folder = os.environ.get(SESSION_VARIABLE)
    if not folder:
        from leadline.capture.root_session import start_session

        start_session(output, sys.orig_argv, options, StartedBy.ENVIRONMENT)
        return
    part = PartDirectory.join(Path(folder), output)
    if part is not None and (options.follow or part.claim("first")):
        Session(part, options, owner=part.is_root(), inner=False).start()
    elif not options.follow:
        for name in VARIABLES:  # its children are nobody's either
            os.environ.pop(name, None)


def _not_measured(sentence: str) -> None:
    """Leave the reason in the part directory, where the file's losses come from, and say it once per session."""
    from pathlib import Path

    from leadline.capture.config import OUTPUT_VARIABLE, SESSION_VARIABLE
    from leadline.capture.messages import say
    from leadline.capture.part import PartDirectory
    from leadline.capture.process_info import MeasuredProcess, first_record

    folder = os.environ.get(SESSION_VARIABLE)
    part = PartDirectory.join(Path(folder), Path(os.environ[OUTPUT_VARIABLE])) if folder else None
    if part is not None:
        process = MeasuredProcess.here()
        record = first_record(process, part.session_id)
        record.not_measured = sentence
        try:
            part.write_record(process.stem, record)
        except OSError:
            return  # the session has ended, or its disk is full: nobody is left to tell
        if not part.claim("not-measured"):
            return
    say(f"{sentence} This process is not measured.")


if os.environ.get("LEADLINE"):
    start_from_environment()
