"""What a request waited for: the largest part of its time that was not its own work.

Its time is queue, prefill and decode, one after the other. Of the decode: preempted (no place in the cache), steps that
computed another request's prompt, the engine between two steps; the rest is decoding. Measured, not estimated: a step
with a prompt in it counts whole, since the request has no token before it ends.
"""

from __future__ import annotations

from leadline.engines.model import SlowRequest

WAITS = {
    "queue": "in the queue",
    "preempted": "preempted",
    "other_prefill": "in others' prefill",
    "between_steps": "between steps",
}
_WORTH = 0.2
"""Of the request's time: less is no reason why it was slow."""


def waited_for(request: SlowRequest) -> tuple[str, int]:
    """A key of WAITS and nanoseconds; ("", 0) where it only computed."""
    name = max(WAITS, key=lambda one: request.values.get(one, 0))
    ns = request.values.get(name, 0)
    return (name, ns) if ns > _WORTH * request.e2e_ns else ("", 0)
