"""The server of `leadline view`: it listens before anything is read, so that its address is there at once.

On the loopback address only, on a port of the system's choice. Every address begins with a random token, so other users
and other pages of the browser find nothing; the Host header must be the server's own, so no foreign name that resolves
to this machine works either. Standard library only: what is shown is the view's (report.view).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from leadline._local_server import TEXT, LocalHandler, LocalServer, is_token


class Answers(Protocol):
    """What is shown: the content type and the body of a path; None where there is no such thing."""

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[str, bytes] | None: ...


class Opening:
    """Stands for a view until that is there: the page itself, of `page`, is handed out at once; the rest waits."""

    def __init__(self, page: Callable[[], str]) -> None:
        self._page = page
        self._there = threading.Event()
        self._view: Answers | None = None

    def opened(self, view: Answers) -> None:
        self._view = view
        self._there.set()

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[str, bytes] | None:
        if path == "" and not self._there.is_set():
            return "text/html; charset=utf-8", self._page().encode()
        self._there.wait()
        return None if self._view is None else self._view.answer(path, query)


class ViewServer:
    """Serves until `close`; `address` is what the browser opens. Raises OSError where `port` is taken; 0 is any."""

    def __init__(self, view: Answers, port: int = 0) -> None:
        self._token = secrets.token_urlsafe(16)
        self._view = view
        self._server = LocalServer(port, self._handler())
        self.port = self._server.server_port
        self.ended = threading.Event()
        self.address = f"http://127.0.0.1:{self.port}/{self._token}/"

    def serve(self) -> None:
        """Until `close` is called from another thread, or an interrupt."""
        try:
            self._server.serve_forever(poll_interval=0.2)
        finally:
            self.ended.set()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[LocalHandler]:
        server = self

        class Handler(LocalHandler):
            def do_GET(self) -> None:
                self.reply(*server._answer(self.path, self.headers.get("Host", "")), _HEADERS)

        return Handler

    def _answer(self, target: str, host: str) -> tuple[int, str, bytes]:
        plain = TEXT
        if not self._server.is_own(host):
            return 403, plain, b"This server answers to its own address only."
        try:
            parts = urlsplit(target)
        except ValueError:
            return 400, plain, b"That is no address."
        token, slash, path = parts.path.lstrip("/").partition("/")
        if not slash or not is_token(token, self._token):
            return 404, plain, b"There is nothing here; open the whole address that `leadline view` printed."
        try:
            found = self._view.answer(path, parse_qs(parts.query))
        except Exception as error:  # a fault of ours costs one answer, and a traceback would go to the terminal
            return 500, plain, f"The profile can no longer be read: {error}".encode("utf-8", "replace")
        return (404, plain, b"There is no such part.") if found is None else (200, *found)


_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
)
