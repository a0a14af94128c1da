"""Measuring that was begun from outside (`leadline attach`): for so long, or until it is told to end.

What is done here happens in somebody's program that knows nothing of it: nothing is printed, nothing raises.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

from leadline._own_thread import OwnThread

_OWN_NAME = "leadline-attach"  # threads of that name are not sampled


def begin(address: str, output: str, seconds: float, options: str, until: float) -> None:
    """Start measuring on a thread of its own. `options`: as JSON; `until`: the moment (time.time()) after which nobody
    waits for it any more. The second call of the same kind does nothing."""
    if time.time() > until:
        return
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(address)
        listener.listen(4)
    except OSError:  # it measures already
        listener.close()
        return
    OwnThread(_run, listener, output, seconds, options).start()


def _run(listener: socket.socket, output: str, seconds: float, options: str) -> None:
    with contextlib.suppress(OSError):
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(_OWN_NAME)
    clients: list[socket.socket] = []
    try:
        news = _start(output, options)
        if news["state"] == "measuring":
            _listen(listener, clients, news, seconds)
            news = _stop(output)
        else:
            _listen(listener, clients, None, 5.0)
    except Exception as error:  # the program must not see it, and who attached must
        news = {"state": "failed", "message": f"Measuring failed: {type(error).__name__}: {error}."}
    finally:
        listener.close()
    for client in clients:
        _say(client, news)
        client.close()


def _start(output: str, options: str) -> dict[str, Any]:
    from leadline.capture.api import start
    from leadline.capture.current import CURRENT
    from leadline.capture.errors import ProfileError

    if CURRENT.session is not None:
        return {"state": "failed", "message": f"It is measured already, into {CURRENT.session.output}."}
    CURRENT.from_outside = True
    try:
        start(output, **{**json.loads(options), "quiet": True})
    except ProfileError as error:
        return {"state": "failed", "message": str(error)}
    finally:
        CURRENT.from_outside = False
    session = CURRENT.session
    return {"state": "measuring", "output": str(session.output if session is not None else output)}


def _stop(output: str) -> dict[str, Any]:
    from leadline.capture.api import stop
    from leadline.capture.errors import ProfileError

    try:
        path = stop()
    except ProfileError as error:  # the program has ended it itself
        return {"state": "failed", "message": str(error)}
    if path is None:
        return {"state": "failed", "message": f"The profile {output} could not be made."}
    return {"state": "done", "path": str(path)}


def _listen(listener: socket.socket, clients: list[socket.socket], news: dict[str, Any] | None, seconds: float) -> None:
    """Until the time is over, or somebody says `stop`; without `news`, until somebody has come to hear."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([listener, *clients], [], [], min(left, 3600.0))
        for one in ready:
            if one is listener:
                client, _ = listener.accept()
                if not _may(client):
                    client.close()
                    continue
                clients.append(client)
                if news is None:
                    return
                _say(client, news)
            else:
                try:
                    word = one.recv(64)
                except OSError:
                    word = b""
                if word.strip() == b"stop":
                    return
                if not word:
                    clients.remove(one)
                    one.close()


def _may(client: socket.socket) -> bool:
    """The same user, or root."""
    _, user, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return user in (0, os.geteuid())


def _say(client: socket.socket, news: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        client.settimeout(5.0)
        client.sendall(json.dumps(news).encode() + b"\n")
