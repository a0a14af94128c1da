"""The public functions for programs that measure themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leadline.capture.config import Options
from leadline.capture.current import CURRENT
from leadline.capture.errors import ProfileError
from leadline.capture.messages import say
from leadline.capture.output import default_output
from leadline.capture.records import StartedBy
from leadline.capture.root_session import start_session


def start(output: str | os.PathLike[str] | None = None, options: Options | None = None, **changes: Any) -> None:
    """Begin measuring this process and the children it starts from now on; `stop` makes the file.

    `output`: the file to write, `<script>.leadline` in the working directory by default; an older profile is replaced.
    While another measurement is writing it, as another rank may be, this one goes to `<script>-1.leadline` and says so.
    `options`: what to measure. `changes`: single fields of it, such as `shapes=True` or `trace="steps=5"`.
    Inside another measurement that one goes on, one sentence says so, and the `stop` that belongs to it does nothing.
    Raises ProfileError for a wrong option, or when the file could not be written.
    """
    checked = _checked(options, changes)
    with CURRENT.lock:
        session = CURRENT.session
        if session is not None:
            CURRENT.nested += 1
            if not session.options.quiet:
                say(f"this program is measured into {session.output} already; leadline.start() inside it does nothing.")
            return
        path = Path(output) if output is not None else default_output(sys.argv)
        start_session(path, sys.argv, checked, StartedBy.PROGRAM)


def stop() -> Path | None:
    """End what `start` began and make the file; returns its path.

    None when a session from outside goes on, or when the file could not be made (said on stderr: after hours of
    training, an exception here would cost more than the profile), or when nothing is measured.
    """
    with CURRENT.lock:
        session = CURRENT.session
        if session is None or not session.inner:
            return None
        if CURRENT.nested:
            CURRENT.nested -= 1
            return None
    return session.stop()  # not under the lock, for which a fork of another thread would wait


def pause() -> None:
    """Stop counting until `resume`, in this process. Does nothing while nothing is measured."""
    session = CURRENT.session
    if session is not None:
        session.pause()


def resume() -> None:
    """Count again after `pause`. Does nothing while nothing is measured."""
    session = CURRENT.session
    if session is not None:
        session.resume()


def step(number: int | None = None) -> None:
    """Say that a training step has ended; `number` is its number, counted up by default.

    Needed only where no torch optimizer marks the steps. Does nothing while nothing is measured.
    """
    session = CURRENT.session
    if session is not None:
        session.step(number)


@contextmanager
def profile(
    output: str | os.PathLike[str] | None = None, options: Options | None = None, **changes: Any
) -> Iterator[None]:
    """Measure what the `with` block does, or each call of the decorated function; see `start` for the arguments.

    Inside another measurement the outer one goes on, and one sentence says so.

    >>> with leadline.profile("out.leadline", shapes=True):
    ...     train()
    """
    outer = CURRENT.session
    if outer is not None and outer.inner:
        if not outer.options.quiet:
            say(f"this program is measured into {outer.output} already; leadline.profile() inside it does nothing.")
        yield
        return
    start(output, options, **changes)
    session = CURRENT.session
    try:
        yield
    finally:
        if session is not None and session.inner:
            session.stop()


def _checked(options: Options | None, changes: dict[str, Any]) -> Options:
    if options is None:
        return Options.of(changes)
    if not isinstance(options, Options):
        raise ProfileError(f"`options` must be a leadline.Options, not {type(options).__name__}.")
    return Options.of(options.asked() | changes)
