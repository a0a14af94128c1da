"""Messages that compare CLOCK_MONOTONIC of two machines, over UDP.

A request carries a number; the answer repeats it with the times at which the request arrived and the answer left, and
the boot id, since a machine that was started again has a new clock. Nothing else is told, and nothing is kept.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time

from leadline._dataclass import dataclass, field
from leadline.capture.identity import boot_id

_REQUEST = struct.Struct("<8sQ")
_ANSWER = struct.Struct("<8sQqq36s")
_MAGIC = b"leadline"
_WAIT_S = 0.5
_MOST_UNANSWERED = 20


class UnansweredError(Exception):
    """The other side says nothing; the message is the rest of a sentence."""


@dataclass
class Messages:
    """Times of pairs of messages in ns: `sent` and `returned` on our clock, `arrived` and `answered` on theirs."""

    sent: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)
    unanswered: int = 0
    boot_id: str = ""


def answer(host: str, port: int, times: int | None = None) -> None:
    """Answer requests until interrupted, or so many. Raises OSError."""
    own = boot_id().encode()[:36].ljust(36, b"\0")
    with _socket(host) as listening:
        listening.bind((host, port))
        while times is None or times > 0:
            data, sender = listening.recvfrom(64)
            arrived = time.monotonic_ns()
            if len(data) != _REQUEST.size or not data.startswith(_MAGIC):
                continue
            number = _REQUEST.unpack(data)[1]
            with contextlib.suppress(OSError):
                listening.sendto(_ANSWER.pack(_MAGIC, number, arrived, time.monotonic_ns(), own), sender)
            times = None if times is None else times - 1


def exchange(host: str, port: int, pairs: int, seconds: float) -> Messages:
    """Send `pairs` requests, evenly over so many seconds. Raises OSError and UnansweredError."""
    found = Messages()
    with _socket(host) as asking:
        asking.settimeout(_WAIT_S)
        asking.connect((host, port))
        begin = time.monotonic_ns()
        for number in range(pairs):
            due = begin + int(number * seconds * 1e9 / pairs)
            if (pause := (due - time.monotonic_ns()) / 1e9) > 0:
                time.sleep(pause)
            if not _one(asking, number, found):
                found.unanswered += 1
                if not found.sent and found.unanswered >= _MOST_UNANSWERED:
                    break
    if len(found.sent) < 2:
        raise UnansweredError("no answer; start `leadline clock-sync --serve HOST:PORT` there, and allow UDP")
    return found


def _one(asking: socket.socket, number: int, found: Messages) -> bool:
    sent = time.monotonic_ns()
    try:
        asking.send(_REQUEST.pack(_MAGIC, number))
        while True:
            data = asking.recv(128)
            returned = time.monotonic_ns()
            if len(data) == _ANSWER.size and data.startswith(_MAGIC):
                _, told, arrived, answered, boot = _ANSWER.unpack(data)
                if told == number:  # an answer that came too late is not ours any more
                    break
    except (TimeoutError, ConnectionRefusedError):
        return False
    own = boot.rstrip(b"\0").decode("utf-8", "replace")
    if found.boot_id not in ("", own):
        raise UnansweredError("the machine restarted during the messages, or two machines answer")
    found.boot_id = own
    found.sent.append(sent)
    found.arrived.append(arrived)
    found.answered.append(answered)
    found.returned.append(returned)
    return True


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
