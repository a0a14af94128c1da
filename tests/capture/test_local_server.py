"""What a stranger on this machine sends to a server of ours: silence on the terminal, and the others are answered."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from leadline._local_server import MOST_CONNECTIONS, TEXT, LocalHandler, LocalServer, is_token
from leadline._view_server import ViewServer
from leadline.profiles.build import build
from leadline.report.view import View


class Echo(LocalHandler):
    def do_GET(self) -> None:
        if self.path == "/broken":
            raise ZeroDivisionError("a fault of ours")
        self.reply(200, TEXT, b"x" * (1 << 20 if self.path == "/large" else 1))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    monkeypatch.setattr(socket, "getfqdn", lambda *_: pytest.fail("a name was looked up"))
    made = LocalServer(0, Echo)
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10)


def reset(client: socket.socket) -> None:
    """Hang up in the middle, as a killed client does."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def asked(port: int, path: str) -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(client):
        client.request("GET", path)
        return client.getresponse().status


RUDE = (b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\n", b"\x00\xff\xfe\r\n\r\n", b"GET " + b"/" * 70000, b"GET http://[/ HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n", b"GET /broken HTTP/1.1\r\n\r\n", b"GET /large HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n")  # fmt: skip


def test_rude_clients_print_nothing_and_others_are_answered(
    server: LocalServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for data in RUDE:
        for leave in (reset, socket.socket.close):
            client = connected(server.server_port)
            with contextlib.suppress(OSError):
                client.sendall(data)
            leave(client)
        assert asked(server.server_port, "/") == 200
    assert capfd.readouterr() == ("", "")


def test_half_requests_are_bounded_and_the_oldest_gives_way(
    server: LocalServer, capfd: pytest.CaptureFixture[str]
) -> None:
    before = threading.active_count()
    slow = []
    for _ in range(4 * MOST_CONNECTIONS):
        slow.append(connected(server.server_port))
        slow[-1].sendall(b"GET / HT")
    assert asked(server.server_port, "/") == 200
    until = time.monotonic() + 20
    while threading.active_count() > before + MOST_CONNECTIONS and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before + MOST_CONNECTIONS
    assert slow[0].recv(1) == b""  # it was let go
    for one in slow:
        one.close()
    assert capfd.readouterr() == ("", "")


def test_tokens_of_any_text_are_compared() -> None:
    assert is_token("abc", "abc")
    for given in ("", "abd", "abcd", "ä", "\ud800", "²"):
        assert not is_token(given, "abc")


def test_a_view_answers_nonsense_with_a_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    view = ViewServer(View([("a", build("operator a | time=1"))]))
    threading.Thread(target=view.serve, daemon=True).start()
    token = view.address.rstrip("/").rpartition("/")[2]
    try:
        assert asked(view.port, f"/{token}/profile/" + "9" * 5000) == 404
        assert asked(view.port, f"/{token}/profile/-1") == 404
        with connected(view.port) as client:
            client.sendall(f"GET http://[/ HTTP/1.1\r\nHost: 127.0.0.1:{view.port}\r\n\r\n".encode())
            assert client.recv(64).split()[1] == b"400"
        assert asked(view.port, f"/{token}x/") == 404
        assert asked(view.port, f"/{token}/") == 200
    finally:
        view.close()
    assert capfd.readouterr() == ("", "")


def test_a_program_that_closes_all_files_keeps_what_it_opens_afterwards() -> None:
    server = LocalServer(0, Echo)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    serving.start()
    number = server.socket.fileno()
    with socket.create_server(("127.0.0.1", 0)) as own:
        os.dup2(own.fileno(), number)  # as closerange() and listen() leave it
        with connected(own.getsockname()[1]) as client:
            serving.join(10)
            assert not serving.is_alive(), "it polls a socket that is not its own"
            own.settimeout(10)
            accepted, address = own.accept()
            accepted.close()
            assert address == client.getsockname()
        server.shutdown()
        server.server_close()
        assert os.path.samestat(os.fstat(number), os.fstat(own.fileno()))
        os.close(number)
