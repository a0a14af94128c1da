"""Requests of a server as regions, folded by route: `GET /items/{}` whatever the item.

Routes are few: what a framework calls them, or paths with numbers, UUIDs and long hexadecimal words left out. Beyond
`MOST_ROUTES` of them all others are one, so that neither the tree nor the metrics grow with what clients ask for.
"""

from __future__ import annotations

import re
import threading
import time
from types import TracebackType

from leadline.capture.region import region

MOST_ROUTES = 256
OTHERS = "(other routes)"
_VARIABLE = re.compile(r"(?<=/)(?:\d+|[0-9a-fA-F]{8,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?=/|$)")
_WORD = re.compile(r"[A-Z]{1,16}$")
_LONGEST = 200


def folded(path: str) -> str:
    """A path without what differs from request to request."""
    return _VARIABLE.sub("{}", path.partition("?")[0])[:_LONGEST] or "/"


class RouteCounts:
    """Of one route: requests that have ended, how long they took, the longest, and how many failed. In ns."""

    __slots__ = ("count", "failed", "longest_ns", "open", "total_ns")

    def __init__(self) -> None:
        self.count = self.total_ns = self.longest_ns = self.failed = self.open = 0


class Requests:
    """Counts by route, of the process."""

    def __init__(self) -> None:
        self.routes: dict[str, RouteCounts] = {}
        self._lock = threading.Lock()

    def name(self, method: str, path: str, route: str) -> str:
        """What the region of a request is called."""
        word = method if _WORD.match(method) else "?"
        return self.known(f"{word} {route or folded(path)}")

    def known(self, name: str) -> str:
        """The name itself, or that of all others where there are too many."""
        with self._lock:
            if name not in self.routes:
                if len(self.routes) >= MOST_ROUTES:
                    name = OTHERS
                self.routes.setdefault(name, RouteCounts())
        return name

    def enter(self, method: str, path: str, route: str = "") -> Request:
        return Request(self, self.name(method, path, route))

    def began(self, name: str) -> int:
        """When; a request of that route is open from now on."""
        with self._lock:
            self.routes[name].open += 1
        return time.monotonic_ns()

    def ended(self, name: str, began_ns: int, failed: bool) -> None:
        took = time.monotonic_ns() - began_ns
        with self._lock:
            one = self.routes[name]
            one.open -= 1
            one.count += 1
            one.failed += failed
            one.total_ns += took
            one.longest_ns = max(one.longest_ns, took)


class Request:
    """One request on one thread, as a `with` block."""

    def __init__(self, requests: Requests, name: str) -> None:
        self.name = name
        self._requests = requests
        self._region = region(name)
        self._began_ns = 0

    def __enter__(self) -> Request:
        self._began_ns = self._requests.began(self.name)
        self._region.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._region.__exit__(kind, error, traceback)
        self._requests.ended(self.name, self._began_ns, error is not None)


REQUESTS = Requests()
