"""What `leadline attach` and `leadline attach --stop` say to a process that measures since it was attached to.

The process listens on an abstract socket that has its number. To whoever connects it says, one JSON object a line, what
it does (`measuring` with `output`), and at the end what has become of it (`done` with `path`, `failed` with `message`);
the word `stop` ends it early.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

from leadline.attach.target import AttachError


class Control:
    """A connection. Raises AttachError where nobody listens."""

    def __init__(self, pid: int, seconds: float = 0.0) -> None:
        """`seconds`: how long it is waited for that the process listens."""
        self._pid = pid
        deadline = time.monotonic() + seconds
        while True:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self._socket.connect(address(pid))
                self._check_peer()
                break
            except OSError:
                self._socket.close()
                if time.monotonic() >= deadline:
                    raise AttachError(f"Process {pid} was not attached to, so there is nothing to stop.") from None
                time.sleep(0.02)
        self._lines = self._socket.makefile("r", encoding="utf-8")

    def next(self) -> dict[str, Any]:
        """What it says next; `failed` when it has ended without a word."""
        try:
            line = self._lines.readline()
            found = json.loads(line) if line else None
        except (OSError, ValueError):
            found = None
        if isinstance(found, dict):
            return found
        return {"state": "failed", "message": f"Process {self._pid} has ended before its profile was made."}

    def stop(self) -> None:
        """End measuring; `next` says what has become of it."""
        self._socket.sendall(b"stop\n")

    def close(self) -> None:
        """Leave; the process goes on measuring."""
        self._lines.close()
        self._socket.close()

    def _check_peer(self) -> None:
        """Anybody may listen on a name: it must be that process."""
        peer = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", peer)[0] not in (self._pid, 0):  # 0: it is in another process namespace
            raise OSError("another process")


def address(pid: int) -> str:
    """Of the socket that a process listens on."""
    return f"\0leadline-attach-{pid}"
