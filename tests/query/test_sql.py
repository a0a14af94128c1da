"""`leadline query --sql`: the views agree with the tree, and SQL reads nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.query.test_query import DRAWN, EVENTS

from leadline.cli import main as cli
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile
from leadline.query import SqlError
from leadline.query.views import VIEWS, run_sql

pytest.importorskip("duckdb")


@pytest.fixture
def profile():
    return build(DRAWN, events=EVENTS, losses=[("events_dropped", 3, "Full.")])


def test_the_views_agree_with_the_tree(profile):
    _, rows = run_sql(profile, "select sum(sum) from metrics where metric = 'time'")
    assert rows[0][0] == profile.tree.root.inclusive("time").sum
    _, rows = run_sql(profile, "select sum from inclusive where node = 0 and metric = 'gpu_time'")
    assert rows == [(700,)]
    below = """select d.name, count(*) from nodes a join nodes d on d.before between a.before + 1 and a.last
               where a.name = 'step' and d.kind = 'operator' group by all order by all"""
    assert run_sql(profile, below)[1] == [("aten::item", 1), ("aten::linear", 2), ("aten::mm", 2)]
    assert run_sql(profile, "select max(duration_ns) from events where event = 'operator'")[1] == [(9000,)]
    assert run_sql(profile, "select kind, count from losses")[1] == [("events_dropped", 3)]
    for view in VIEWS:
        names, rows = run_sql(profile, f"select * from {view}")
        assert names
        assert rows


@pytest.mark.parametrize("statement", ["select * from '/etc/passwd'", "copy nodes to '/tmp/x.csv'", "selec 1",
                                       "install httpfs", "set enable_external_access=true"])  # fmt: skip
def test_what_is_closed_or_wrong_is_a_sentence(profile, statement):
    with pytest.raises(SqlError) as caught:
        run_sql(profile, statement)
    assert "\n" not in str(caught.value)


def test_the_command(profile, tmp_path: Path, capsys):
    path = str(tmp_path / "run.leadline")
    write_profile(path, profile)
    assert cli.main(["sql", path, "select name from nodes where kind = 'kernel' limit 1"]) == 0
    assert capsys.readouterr().out.split() == ["name", "sgemm"]
    assert cli.main(["sql", path, "select 1 as one", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"one": 1}]
    assert cli.main(["sql", path, "select"]) == 2


def test_no_column_is_lost_and_json_is_json(profile, tmp_path, capsys):
    path = tmp_path / "p.leadline"
    write_profile(path, profile)
    statement = "select 1 as a, 2 as a, 'inf'::double as a_2, 'nan'::double as b"
    assert cli.main(["sql", str(path), statement, "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert json.loads(text, parse_constant=pytest.fail) == [{"a": 1, "a_3": 2, "a_2": None, "b": None}]


@pytest.mark.parametrize("statement", ["", "  ;\n"])
def test_an_empty_statement_is_one_sentence(profile, statement):
    with pytest.raises(SqlError, match="The statement is empty"):
        run_sql(profile, statement)
