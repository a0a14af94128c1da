"""An HTTP endpoint on the loopback address: start, stop, snapshot, metrics. Off unless a program or `leadline run
--endpoint` asks for it.

    GET  /metrics     in the text format of Prometheus
    GET  /status      what runs, as JSON
    POST /start       go on, or begin where nothing runs
    POST /stop        rest, or end what /start began
    POST /snapshot    the profile as it is now; ?format=otlp (or another format of `leadline export`) converts it

Every request needs the token, as `Authorization: Bearer TOKEN`; the Host header must be the server's own, so that no
page in a browser gets here under another name. Paths are not taken from requests: files lie beside the session's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from leadline._own_thread import OwnThread
from leadline.capture.config import VARIABLES
from leadline.capture.current import CURRENT
from leadline.capture.endpoint_file import port_file, remove_stale
from leadline.capture.errors import ProfileError
from leadline.capture.metrics import metrics_text

if TYPE_CHECKING:
    from leadline._local_server import LocalHandler
    from leadline.capture.handle import Current
    from leadline.capture.native import Native


def open_announced(place: str, native: Native) -> Endpoint | None:
    """An endpoint that stands in the file `place`, or in `place.PID` where another process of the job was first; None
    where there can be none, which is counted."""
    from leadline.capture.handle import current

    endpoint = None
    try:
        endpoint = Endpoint(current())
        remove_stale(place)
        try:
            endpoint.write_port_file(place, replace=False)
        except FileExistsError:
            endpoint.write_port_file(f"{place}.{os.getpid()}")
    except OSError as error:
        if endpoint is not None:
            endpoint.close()
        sentence = f"There is no endpoint of this process: {error.strerror or error}."
        native.count_loss("provider_unavailable", 1, sentence)
        return None
    return endpoint


def _leave_to_parent(endpoint: Endpoint | None) -> None:
    if endpoint is not None:
        endpoint.close_socket()


FORMATS = ("otlp", "pprof", "speedscope", "collapsed")
_TEXT = "text/plain; charset=utf-8"


class Endpoint:
    """Serves until `close`. `address` and `token` are for whoever may ask; `port_file` holds both for this user."""

    def __init__(self, current: Current, port: int = 0) -> None:
        import secrets

        from leadline._local_server import LocalServer  # here, for those who open none

        self._current = current
        self.token = secrets.token_hex(16)
        self._server = LocalServer(port, self._handler())
        self.port = self._server.server_port
        self.address = f"http://127.0.0.1:{self.port}"
        self._port_file: Path | None = None
        self._pid = os.getpid()
        OwnThread(self._server.serve_forever).start()
        mine = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _leave_to_parent(mine()))

    def close(self) -> None:
        """Nobody can ask any more."""
        if os.getpid() != self._pid:
            return
        try:
            self._server.shutdown()
            self._server.server_close()
        finally:
            if self._port_file is not None:
                self._port_file.unlink(missing_ok=True)

    def close_socket(self) -> None:
        """Let go of the parent's socket, which a forked child would keep open without ever answering."""
        if self._server.is_open:
            self._server.socket.close()

    def write_port_file(self, path: str | os.PathLike[str], *, replace: bool = True) -> None:
        """`ADDRESS TOKEN`, readable by this user only, until `close`. Raises OSError, ProfileError where a file
        of another kind is there, and FileExistsError where any is that may not be replaced."""
        target = Path(path)
        if replace:
            port_file(os.fspath(path))
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{self.address} {self.token}\n")
        self._port_file = target

    def answer(self, method: str, target: str) -> tuple[int, str, bytes]:
        """(status, content type, body) of a request that was let in."""
        try:
            url = urlsplit(target)
            match method, url.path:
                case "GET", "/metrics":
                    return 200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(self._current).encode()
                case "GET", "/status":
                    return 200, "application/json", json.dumps(self._status()).encode()
                case "POST", "/start":
                    self._current.start()
                    return 200, "application/json", json.dumps(self._status()).encode()
                case "POST", "/stop":
                    path = self._current.stop()
                    told = {**self._status(), "file": str(path) if path is not None else None}
                    return 200, "application/json", json.dumps(told).encode()
                case "POST", "/snapshot":
                    return self._snapshot(parse_qs(url.query).get("format", [""])[0])
        except ProfileError as error:
            return 409, _TEXT, f"{error}\n".encode()
        except OSError as error:
            return 500, _TEXT, f"The profile could not be read or written: {error}\n".encode()
        except Exception as error:
            return 400, _TEXT, f"That request makes no sense: {error}\n".encode("utf-8", "replace")
        return 404, _TEXT, b"There are GET /metrics and /status, POST /start, /stop and /snapshot.\n"

    def _status(self) -> dict[str, Any]:
        session = CURRENT.session
        return {
            "running": self._current.running,
            "output": str(session.output) if session is not None else None,
            "pid": os.getpid(),
        }

    def _snapshot(self, wanted: str) -> tuple[int, str, bytes]:
        if wanted and wanted not in FORMATS:
            return 400, _TEXT, f"There is no format {wanted[:40]!r}; there are {', '.join(FORMATS)}.\n".encode()
        with tempfile.TemporaryDirectory(prefix="leadline-") as folder:
            path = self._current.snapshot(Path(folder) / "snapshot.leadline")
            if not wanted:
                return 200, "application/octet-stream", path.read_bytes()
            made = Path(folder) / "made"
            environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
            command = [sys.executable, "-m", "leadline", "export", str(path), "--format", wanted, "-o", str(made)]
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if done.returncode != 0:
                return 500, _TEXT, done.stderr[-500:]
            kind = "application/x-protobuf" if wanted == "otlp" else "application/octet-stream"
            return 200, kind, made.read_bytes()

    def _let_in(self, headers: Any) -> bool:
        from leadline._local_server import is_token

        given = headers.get("Authorization", "").removeprefix("Bearer ")
        return self._server.is_own(headers.get("Host", "")) and is_token(given, self.token)

    def _handler(self) -> type[LocalHandler]:
        from leadline._local_server import LocalHandler

        endpoint = self

        class Handler(LocalHandler):
            def do_GET(self) -> None:
                self._reply("GET")

            def do_POST(self) -> None:
                self._reply("POST")

            def _reply(self, method: str) -> None:
                if endpoint._let_in(self.headers):
                    status, kind, body = endpoint.answer(method, self.path)
                else:
                    status, kind, body = 403, _TEXT, b"The token is missing, or this is not the server's own address.\n"
                self.reply(status, kind, body, [("Cache-Control", "no-store")])

        return Handler
