"""The numbers of the tables: equal to the report's on a real profile, and right on a drawn one with a device and ranks."""

from __future__ import annotations

import pytest

from leadline.profiles.builder import ProfileBuilder
from leadline.report import ReportOptions, build_report
from leadline.terminal.tables import NAMES, TableMaker, sorted_rows


def maker(profile) -> TableMaker:
    return TableMaker(profile, build_report(profile, ReportOptions(top=1000, merge_layers=True)), profile.findings)


def column(table, title: str) -> list:
    place = [one.title for one in table.columns].index(title)
    return [row.cells[place] for row in table.rows]


def two_ranks():
    builder = ProfileBuilder()
    for rank in range(2):
        process = builder.process("train.py", pid=rank + 1, rank=rank)
        thread = builder.thread(process, "MainThread", tid=1, wall_ns=1000, operator_ns=300, cpu_ns=900)
        builder.device(process, 0, "GPU")
        line = builder.child(
            builder.node_of_thread(thread), builder.frame("python", "step", file="/home/ada/train.py", line=7)
        )
        operator = builder.child(line, builder.frame("operator", "aten::mm"))
        builder.add(operator, "time", 300)
        builder.add(operator, "call_time", 300)
        kernel = builder.child(operator, builder.frame("kernel", "gemm"))
        for nanoseconds in (40, 60):
            builder.add(kernel, "gpu_time", nanoseconds, device=rank, stream=7)
        reduce = builder.child(operator, builder.frame("collective", "ncclAllReduce"))
        builder.add(reduce, "gpu_time", 25, device=rank, stream=9)
    return builder.profile({})


def test_device_work_is_summed_by_name_over_ranks():
    kernels = maker(two_ranks()).table("kernels")
    assert column(kernels, "name") == ["gemm", "ncclAllReduce"]
    assert column(kernels, "total") == [200, 50]
    assert column(kernels, "times") == [4, 2]
    assert column(kernels, "mean") == [50, 25]
    assert column(kernels, "min") == [40, 25]


def test_collectives_are_a_table_of_their_own():
    collectives = maker(two_ranks()).table("collectives")
    assert column(collectives, "name") == ["ncclAllReduce"]
    assert column(collectives, "share") == [1.0]


def test_a_line_answers_for_the_device_time_below_it():
    lines = maker(two_ranks()).table("lines")
    assert [row.cells[0] for row in lines.rows] == ["train.py:7"]
    assert column(lines, "GPU") == [250]
    assert column(lines, "time") == [600]
    assert (lines.rows[0].file, lines.rows[0].line) == ("/home/ada/train.py", 7)


def test_each_rank_is_a_row():
    ranks = maker(two_ranks()).table("ranks")
    assert column(ranks, "rank") == [0, 1]
    assert column(ranks, "GPU") == [125, 125]
    assert column(ranks, "operators") == [300, 300]


def test_tables_of_a_real_profile_have_the_report_s_numbers(real):
    report = build_report(real, ReportOptions(top=1000, merge_layers=True))
    tables = maker(real)
    operators = tables.table("operators")
    assert column(operators, "operator") == [row.name for row in report.operators]
    assert column(operators, "self") == [row.time.self for row in report.operators]
    assert column(tables.table("modules"), "total") == [row.time_ns for row in report.modules]
    held = sum(path.values["peak_live_bytes"] for peak in report.memory.peaks for path in peak.holders)
    assert sum(column(tables.table("memory"), "held")) == held


@pytest.mark.parametrize("name", NAMES)
def test_any_column_orders_any_table(real, name):
    table = maker(real).table(name)
    for place, one in enumerate(table.columns):
        values = [row.cells[place] for row in sorted_rows(table, place, True)]
        key = str.casefold if one.unit == "text" else float
        assert values == sorted(values, key=key, reverse=True)
