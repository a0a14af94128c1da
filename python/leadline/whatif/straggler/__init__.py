"""Stragglers of a large job: how much faster it would run if every worker were as fast as the average one.

    report = straggler.analyse(trace := straggler.read("trace.parquet"))
    report.slowdown            # simulated step time / step time without stragglers
    report.by_stage            # the same, when only this stage keeps its measured durations
    straggler.job_graph(trace).graph                     # the ordinary graph behind it, for any other question

Definitions follow "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025): the ideal step
gives each computation the mean and each communication the median of its kind over all workers and steps (Eq. 1); a
group's slowdown lets only that group keep its measured durations (Eq. 2 and 4).
"""

from .analysis import Explanation, StragglerReport, analyse
from .jobgraph import JobGraph, job_graph
from .operations import Operation, OperationTrace, StragglerInputError, from_columns, read

__all__ = [
    "Explanation",
    "JobGraph",
    "Operation",
    "OperationTrace",
    "StragglerInputError",
    "StragglerReport",
    "analyse",
    "from_columns",
    "job_graph",
    "read",
]
