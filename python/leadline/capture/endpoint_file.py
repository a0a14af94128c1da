"""The file that holds an endpoint's address. Apart from the endpoint, so that a program without one loads no server."""

from __future__ import annotations

import contextlib
from pathlib import Path

from leadline.capture.errors import ProfileError

ENDPOINT_HELP = (
    "open an HTTP endpoint on this machine's loopback address for start, stop, snapshot and metrics; its address and "
    "token go into FILE, which only you may read (FILE.PID for further processes)"
)
"""Of `leadline run --endpoint`."""
ADDRESS_BEGINS = b"http://127.0.0.1:"


def port_file(name: str) -> str:
    """The whole path of a file for an endpoint's address, where nothing of somebody else's is; raises ProfileError.
    Empty for an empty name."""
    if not name:
        return ""
    path = Path(name).absolute()
    try:
        if path.exists():
            with path.open("rb") as file:
                if file.read(len(ADDRESS_BEGINS)) != ADDRESS_BEGINS:
                    raise ProfileError(f"{name} is there and holds no endpoint's address; name another file.")
            path.unlink()
    except OSError as error:
        raise ProfileError(f"{name} cannot hold the endpoint's address: {error.strerror or error}.") from error
    return str(path)


def remove_stale(place: str) -> None:
    """Delete the file `place` and its `place.PID`s where they hold addresses that nobody answers at: a process that
    was killed, or has become another program, leaves its own. Raises nothing."""
    if not place:
        return
    path = Path(place)
    with contextlib.suppress(OSError):
        for file in path.parent.iterdir():
            base, _, pid = file.name.rpartition(".")
            if file.name == path.name or (base == path.name and pid.isdigit()):
                _remove_unanswered(file)


def _remove_unanswered(file: Path) -> None:
    import socket  # here, for those who have an endpoint

    try:
        address = file.read_bytes()[:64]
        port = int(address.removeprefix(ADDRESS_BEGINS).split()[0]) if address.startswith(ADDRESS_BEGINS) else 0
        with socket.create_connection(("127.0.0.1", port), 1):
            return
    except ConnectionRefusedError:
        file.unlink(missing_ok=True)
    except (OSError, ValueError, IndexError):
        return  # nothing of ours, or it cannot be known
