"""How much work a device takes before a launch has to wait for room: launches that took long then say when it was full.

A launch call that waits looks like CPU work. Where the launches that took unusually long all found about as much work
outstanding, and shorter ones less, that much is the depth of the queue: each launch then waits for the end of the work
that many launches before it, and only the rest is its own time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.whatif.build.device import TOLERANCE_NS, Stream
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import EdgeType, IntArray
from leadline.whatif.residuals import medians

LONG_NS = 5_000  # beyond the usual time of the call
LONG_FACTOR = 2
LEAST_DEPTH = 8
LEAST_SHARE = 0.005  # of the window that launches must have waited
ENOUGH = 4  # launches that waited
STEADY = 0.02  # of the work found outstanding, where every launch waits
SOON = 0.3  # of a launch: after the end of some work, where that made room for it
SPREAD = 0.15  # of the work found outstanding, between the tenth and the ninetieth of the launches that waited
USUAL_DEPTH = 1024  # of CUDA's queues; a longer one that the trace shows is taken instead


def limit(draft: Draft, streams: Sequence[Stream]) -> None:
    """Find the depth of the queue of each device and enter its waits."""
    carried = np.zeros(len(draft), np.bool_)
    carried[draft.carried] = True
    for device in sorted({stream.device for stream in streams}):
        ids = np.concatenate([stream.ids for stream in streams if stream.device == device])
        launched = draft["parent"][ids] >= 0
        if int(launched.sum()) > LEAST_DEPTH:
            _limit(draft, ids[launched], ids[carried[ids] & ~launched])


def _limit(draft: Draft, ids: IntArray, carried: IntArray) -> None:
    """`carried`: what was given to the device before the window, and takes room until it has run."""
    calls = draft["parent"][ids].astype(np.int64)
    order = np.lexsort((ids, draft["start_ns"][calls]))
    ids, calls = ids[order], calls[order]
    carried = carried[np.argsort(draft["start_ns"][carried], kind="stable")]
    begin, finish = draft["start_ns"][calls], draft["start_ns"][calls] + draft["duration_ns"][calls]
    ended = np.sort(draft["end_ns"][np.concatenate((carried, ids))])
    issued = carried.size + np.arange(ids.size)
    before = issued - np.searchsorted(ended, begin, side="right")
    after = issued + 1 - np.searchsorted(ended, finish, side="right")
    length = finish - begin
    usual = medians(draft["name"][calls].astype(np.int64), length)
    # the median of calls that mostly waited is no usual time: a fifth of all is
    short = np.minimum(usual, _quick(draft["name"][calls].astype(np.int64), length))
    long = length > np.maximum(LONG_FACTOR * short, short + LONG_NS)
    if _always_full(before, after, begin, finish, ended):
        short, long = np.zeros_like(length), np.ones_like(long)
    depth = _depth(before, after, long)
    waited = int(np.maximum(length - short, 0)[long].sum())
    everything = np.concatenate((carried, ids))
    calls = np.concatenate((np.full(carried.size, -1, np.int64), calls))
    if depth and waited > LEAST_SHARE * (draft.window_ns[1] - draft.window_ns[0]):
        draft.facts["queue_depth"] = depth
        full = long & (before >= (1 - SPREAD) * depth)
        _wait_behind(draft, everything, ids[full], short[full], _wait_for_room(draft, everything, calls, depth, True))
    elif everything.size > USUAL_DEPTH:
        _wait_for_room(draft, everything, calls, max(USUAL_DEPTH, int(before.max(initial=0)) + 1), False)


def _always_full(before: IntArray, after: IntArray, begin: IntArray, finish: IntArray, ended: IntArray) -> bool:
    """Whether every launch waited, so that none has a usual time: all find the same work outstanding, and each returns
    soon after some work has ended."""
    if before.size < 4 * ENOUGH or int(before.min()) < LEAST_DEPTH - 1:
        return False
    low, high = np.quantile(after, (0.1, 0.9))
    if high - low > max(2.0, STEADY * float(np.median(after))):
        return False
    last = np.searchsorted(ended, finish, side="right") - 1
    room = ended[np.maximum(last, 0)]
    waited = (last >= 0) & (room > begin)
    lag = np.where(waited, finish - room, finish - begin)
    return bool(float(waited.mean()) > 0.5 and np.median(lag) < SOON * np.median(finish - begin))


def _quick(name: IntArray, length: IntArray) -> IntArray:
    """For every call a time that one in ten of its name stays below."""
    result = np.empty_like(length)
    for kind in np.unique(name).tolist():
        mine = name == kind
        result[mine] = int(np.quantile(length[mine], 0.1))
    return result


def _depth(before: IntArray, after: IntArray, long: np.ndarray) -> int:
    """What launches that took long found outstanding, where they agree on it; 0 where they do not."""
    full = after[long & (before >= LEAST_DEPTH - 1)]
    if full.size < ENOUGH:
        return 0
    low, middle, high = np.quantile(full, (0.1, 0.5, 0.9))
    depth = round(float(middle))
    if depth < LEAST_DEPTH or high - low > max(1.0, SPREAD * depth):
        return 0
    # a queue that is full lets nobody in, so hardly anything was ever given to it beyond its depth; where many launches
    # take more room than others, it is deeper than most of those that waited found it
    return next((most for most in (depth, round(float(high))) if float((before > most + 1).mean()) < 0.01), 0)


def _wait_for_room(draft: Draft, ids: IntArray, calls: IntArray, depth: int, waits_found: bool) -> IntArray:
    """Each launch waits for the work `depth` launches before it (call -1: launched before the window). Where no waits
    were found the edges only hold back what runs further ahead than it did. Returns the calls that waited."""
    ahead, waiting, call = ids[:-depth], ids[depth:], calls[depth:]
    seen = call >= 0
    ahead, waiting, call = ahead[seen], waiting[seen], call[seen]
    room = draft["end_ns"][ahead]
    finish = draft["start_ns"][call] + draft["duration_ns"][call]
    possible = room <= finish + TOLERANCE_NS
    early = room + TOLERANCE_NS
    waited = np.zeros(call.size, dtype=np.bool_)
    if waits_found:
        waited = possible & (room > draft["start_ns"][call])
        begin = np.where(waited, np.clip(room, draft["start_ns"][call], finish), draft["start_ns"][call])
        draft["start_ns"][call[waited]] = begin[waited]
        draft["duration_ns"][call[waited]] = np.maximum(finish - begin, 0)[waited]
        possible &= room <= np.maximum(begin, draft["start_ns"][call])
    else:
        possible &= early <= draft["start_ns"][call]
    # a launch of its own work only: a call with many kernels waits for room for the first
    _, first = np.unique(call, return_index=True)
    chosen = np.zeros(call.size, dtype=np.bool_)
    chosen[first] = True
    chosen &= possible & (draft["parent"][ahead] != call) & (waiting >= 0)
    draft.edges(ahead[chosen], call[chosen], EdgeType.ROOM, np.zeros(int(chosen.sum()), dtype=np.int64))
    return call[waited]


def _wait_behind(draft: Draft, everything: IntArray, ids: IntArray, short: IntArray, explained: IntArray) -> None:
    """Launches that took long with a queue nearly full, and for which the work `depth` launches before them ended too
    late: a launch takes more of the queue than another. They waited until the work that ended last before they went on.

    ids: their work; short: the usual time of the call, which is its own.
    """
    calls, first = np.unique(draft["parent"][ids], return_index=True)
    left = ~np.isin(calls, explained)
    calls, own = calls[left], short[first][left]
    finish = draft["start_ns"][calls] + draft["duration_ns"][calls]
    begin = finish - np.minimum(own, draft["duration_ns"][calls])
    by_end = everything[np.argsort(draft["end_ns"][everything], kind="stable")]
    last = np.searchsorted(draft["end_ns"][by_end], begin, side="right") - 1
    ahead = by_end[np.maximum(last, 0)]
    waited = (last >= 0) & (draft["end_ns"][ahead] > draft["start_ns"][calls])
    calls, ahead, begin = calls[waited], ahead[waited], begin[waited]
    draft["duration_ns"][calls] -= begin - draft["start_ns"][calls]
    draft["start_ns"][calls] = begin
    draft.edges(ahead, calls, EdgeType.ROOM, begin - draft["end_ns"][ahead])
