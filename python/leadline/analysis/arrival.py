"""Which rank did not arrive: of a job that hangs, or that was killed while it hung.

Every rank counts the collectives that it has begun. Ranks that wait in the n-th have begun n; the one they wait for has
begun fewer. Only ranks that did not stop in order are looked at, and only among peers whose other members agree, since
groups of different size lawfully begin different numbers. A rank of which nothing was read is missing, which is
another word: nobody knows whether it arrived. One that was attached in the middle of the job has begun more than it has
counted, and is left out of it.
"""

from __future__ import annotations

from collections import Counter

from leadline.analysis.ranks import RankView, ranges, rank_label
from leadline.profiles.fold.state import PARTIAL

_AGREE = 0.5
"""More than this share of the peers must have begun the same number."""


def arrivals(view: RankView) -> tuple[str, ...]:
    """One sentence for each group of peers that waits for somebody."""
    begun = view.count("collectives").tolist()
    made = []
    for rows in view.peers().values():
        waiting = [row for row in rows if view.ranks[row].status == PARTIAL]
        open_ = [row for row in waiting if not view.was_attached(row)]
        if len(open_) < len(waiting):
            made += _incomparable(view, [row for row in waiting if view.was_attached(row)])
        if len(open_) < 2 or not any(begun[row] for row in open_):
            continue
        most = max(begun[row] for row in open_)
        there = [row for row in open_ if begun[row] == most]
        wrote = [view.ranks[row].end_ns for row in there]
        # ranks begin one after another: of one that had begun none, an older file than all of the others' tells nothing
        behind = [row for row in open_ if begun[row] < most and (begun[row] or view.ranks[row].end_ns >= min(wrote))]
        if not behind or len(there) <= _AGREE * len(open_):
            continue
        counts = Counter(begun[row] for row in behind)
        for count in sorted(counts):
            late = [row for row in behind if begun[row] == count]
            who = rank_label(view.ranks[late[0]]) if len(late) == 1 else f"ranks {_numbers(view, late)}"
            it = "it" if len(late) == 1 else "they"
            made.append(
                f"{who[0].upper()}{who[1:]} did not arrive: {it} had begun {count} collectives and "
                f"{'rank' if len(there) == 1 else 'ranks'} {_numbers(view, there)} {most}."
            )
    return tuple(made)


def _incomparable(view: RankView, rows: list[int]) -> list[str]:
    who = rank_label(view.ranks[rows[0]]) if len(rows) == 1 else f"ranks {_numbers(view, rows)}"
    return [
        f"{who[0].upper()}{who[1:]} {'was' if len(rows) == 1 else 'were'} attached in the middle of the job: how many "
        "collectives had begun there is not known, so whether it arrived is not, either."
    ]


def _numbers(view: RankView, rows: list[int]) -> str:
    return ranges([view.ranks[row].rank for row in rows])
