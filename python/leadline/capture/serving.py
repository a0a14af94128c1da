"""ASGI and WSGI applications wrapped, so that every request is a region named by its route.

In an event loop a request is inside its region only while it runs (see region.py). Endpoints of FastAPI that are plain
functions run on threads of a pool: those are wrapped once each, so that what they do stands below the route there.
Promises: requests, answers and errors pass unchanged; what cannot be wrapped is served without a region.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from leadline.capture.region import _Call, _Steps, region
from leadline.capture.requests import REQUESTS

_WRAPPED = "_leadline_wrapped"


def asgi(app: Any) -> Callable[..., Awaitable[None]]:
    """An ASGI application that measures what `app` does for each HTTP request."""

    async def measured(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("type") != "http":
            await app(scope, receive, send)
            return
        route = ""
        with contextlib.suppress(Exception):
            route = _route_of(app, scope)
        name = REQUESTS.name(str(scope.get("method", "")), str(scope.get("path", "")), route)
        began_ns = REQUESTS.began(name)
        failed = True
        try:
            await _Steps(app(scope, receive, send), _Call(name, None))
            failed = False
        finally:
            REQUESTS.ended(name, began_ns, failed)

    return measured


def wsgi(app: Callable[..., Iterable[bytes]], url_map: Any = None) -> Callable[..., Iterable[bytes]]:
    """A WSGI application that measures what `app` does for each request. `url_map`: Werkzeug's (Flask's)."""

    def measured(environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        route = ""
        if url_map is not None:
            with contextlib.suppress(Exception):
                rule, _ = url_map.bind_to_environ(environment).match(return_rule=True)
                route = str(rule.rule)
        method, path = str(environment.get("REQUEST_METHOD", "")), str(environment.get("PATH_INFO", ""))
        with REQUESTS.enter(method, path, route) as request:
            answer = app(environment, start_response)
        return answer if isinstance(answer, list | tuple) else _Body(answer, request.name)

    return measured


class _Body:
    """An answer that is made while it is sent."""

    def __init__(self, answer: Iterable[bytes], name: str) -> None:
        self._answer = answer
        self._name = f"{name} (body)"

    def __iter__(self) -> Iterator[bytes]:
        iterator = iter(self._answer)
        while True:
            with region(self._name):
                try:
                    piece = next(iterator)
                except StopIteration:
                    return
            yield piece

    def close(self) -> None:
        close = getattr(self._answer, "close", None)
        if close is not None:
            close()


def _route_of(app: Any, scope: Any) -> str:
    """The path of the route that Starlette will choose; empty for another framework."""
    for route in getattr(app, "routes", ()):
        match, _ = route.matches(scope)
        if getattr(match, "value", 0) == 2:  # Match.FULL
            _follow(route)
            return str(getattr(route, "path_format", None) or getattr(route, "path", ""))
    return ""


def _follow(route: Any) -> None:
    dependant: Any = getattr(route, "dependant", None)
    call = getattr(dependant, "call", None)
    if call is None or inspect.iscoroutinefunction(call) or hasattr(call, _WRAPPED):
        return
    if not inspect.isfunction(call) and not inspect.ismethod(call):
        return
    methods = sorted(getattr(route, "methods", None) or ["?"])
    name = f"{methods[0]} {getattr(route, 'path_format', '')}"
    wrapped = region(name)(call)
    setattr(wrapped, _WRAPPED, True)
    dependant.call = wrapped
