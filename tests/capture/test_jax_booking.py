"""Runs of JAX's programs are shared among the programs that were timed at a place, whatever was booked before."""

from __future__ import annotations

from types import SimpleNamespace

from tests.capture.test_tensorflow_windows import Native

from leadline.capture.providers.jax.booking import Booking
from leadline.capture.providers.jax.windows import Timed


def _timed(wall_ns: int, *, early: bool) -> Timed:
    timed = Timed(early=early)
    timed.add_run(wall_ns)
    return timed


def test_a_program_whose_only_timed_run_is_booked_already_shares_in_no_later_run() -> None:
    """Compiled for a second shape: the first program's run was booked alone, then the second's came."""
    native, key = Native(), (1, "jit(f)")
    windows = SimpleNamespace(of_key={key: {1: 1}}, timed={1: _timed(1000, early=True)}, device_type=0)
    windows.waits_for_more = lambda _, timed: timed.early
    windows.is_too_large = lambda _: False
    booking = Booking(native, {}, windows)  # type: ignore[arg-type]
    assert booking.book({key: 1}, last=False) == 0
    windows.timed[2] = _timed(3000, early=False)
    windows.of_key[key] = {2: 1, 1: 1}
    assert booking.book({key: 5}, last=True) == 0
    runs = sum(count for (_, metric), (count, _) in native.booked.items() if metric == "call_time")
    assert runs == 5
