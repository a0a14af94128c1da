"""The HTTP server behind `leadline view`, `--endpoint` and the listener of training: on the loopback address only.

Promises: nothing is ever printed, since one of them lives in the profiled program; a client that hangs up, sends half a
request or nonsense costs its own connection; connections are bounded, and the oldest gives way; no name is looked up.
Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import socketserver
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from leadline._own_thread import Flag, OwnThread

MOST_CONNECTIONS: Final = 64
TIMEOUT_S: Final = 30.0
"""Of one read or write."""
TEXT: Final = "text/plain; charset=utf-8"


class _OverError(Exception):
    """Nothing is to be served any more."""


class LocalServer(ThreadingHTTPServer):
    """Raises OSError where `port` is taken; 0 is any that is free."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, port: int, handler: type[LocalHandler]) -> None:
        self._open: dict[socket.socket, None] = {}  # in the order they came
        self._lock = threading.Lock()
        self._served = Flag()
        self._ending = False
        super().__init__(("127.0.0.1", port), handler)
        self._identity = _identity(self.socket)

    @property
    def is_open(self) -> bool:
        """Whether the number of its socket still is its own: a program may close all files and open others."""
        return _identity(self.socket) == self._identity

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        """Until `shutdown`, or until the program has closed the socket, as daemons close all files."""
        try:
            with contextlib.suppress(_OverError):
                super().serve_forever(poll_interval)
        finally:
            self._served.set()

    def shutdown(self) -> None:
        """`serve_forever` returns; not called on its thread."""
        self._ending = True
        self._served.wait(TIMEOUT_S)

    def service_actions(self) -> None:
        """Called between requests."""
        if self._ending or not self.is_open:
            raise _OverError

    def get_request(self) -> tuple[socket.socket, Any]:
        """Never takes a connection from a socket of the program's."""
        if not self.is_open:
            raise OSError
        return super().get_request()

    def server_close(self) -> None:
        """Closes nothing that is not its own."""
        if self.is_open:
            super().server_close()
        else:
            self.socket.detach()

    def server_bind(self) -> None:
        """Without the look-up of this machine's name that HTTPServer does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def is_own(self, host: str) -> bool:
        """Whether a Host header is this server's, and no foreign name that resolves to this machine."""
        return host in (f"127.0.0.1:{self.server_port}", f"localhost:{self.server_port}")

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            while len(self._open) >= MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread sees the end and leaves
            self._open[request] = None
        try:
            OwnThread(self.process_request_thread, request, client_address).start()
        except RuntimeError:  # no thread can be started: the program is at a limit, or ends
            self._forget(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The terminal is not ours."""

    def _forget(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)


class LocalHandler(BaseHTTPRequestHandler):
    """Answers by `reply`; says nothing of itself."""

    server: LocalServer
    server_version = "leadline"
    sys_version = ""
    timeout = TIMEOUT_S

    def reply(self, status: int, kind: str, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
        """The whole answer; one that the client does not wait for is dropped."""
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """The terminal is not ours."""


def _identity(of: socket.socket) -> tuple[int, int] | None:
    try:
        status = os.fstat(of.fileno())
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_token(given: str, token: str) -> bool:
    """Whether they are equal, in the time that any other takes; `given` may hold anything."""
    return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())
