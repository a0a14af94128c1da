"""What is computed again, by the numbers of values: the place is the outermost that does nothing else."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import training

from leadline.analysis.analyze import analyze

MS = 1_000_000


def again(calls: int, ms: float, number: int, name: str = "aten::mm") -> str:
    ns = int(ms * MS) // calls * calls
    text = f"operator {name} | time={ns}/{calls} call_time={ns}/{calls}"
    return text + (f" again={number}/{number}" if number else "")


def found(*lines: str):
    return [one for one in analyze(training(*lines), ["redundant_work"]) if "computed before" in one.title]


AT = "python main @ /home/ada/train.py:43"


def test_a_function_that_computes_again_is_named_where_it_is_called():
    (one,) = found(AT, "  python mask @ /home/ada/net.py:7", "    " + again(40, 20, 39))
    assert (one.lines[0].short, one.lines[0].line) == ("train.py", 43)
    assert one.severity.value == "warning"
    assert "register_buffer" in one.remedy


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("terms = polynomials(laplacian(graph), 3)", "polynomials(laplacian(graph), 3) computes again"),
        (f"terms = polynomials({'graph, ' * 20})", "polynomials(...) computes again"),
        ("terms = polynomials(graph) @ laplacian(graph)", "forward computes again"),
        ("terms = graph @ graph", "forward computes again"),
    ],
)
def test_the_call_of_the_line_is_named_where_there_is_one(line: str, said: str, tmp_path):
    file = tmp_path / "net.py"
    file.write_text(f"def forward(x, graph):\n    {line}\n    return terms\n")
    (one,) = found(AT, f"  python forward @ {file}:2", "    " + again(40, 20, 39), f"  python forward @ {file}:3",
                   "    " + again(10, 10, 0))  # fmt: skip
    assert one.title.startswith(said), one.title


def test_a_line_that_computes_something_new_as_well_is_not_named_for_all_of_it():
    (one,) = found(AT,
        "  python a @ /home/ada/net.py:7", "    " + again(40, 20, 39),
                   "  python b @ /home/ada/net.py:9", "    " + again(40, 20, 0))  # fmt: skip
    assert (one.lines[0].short, one.lines[0].line) == ("net.py", 7)


def test_a_loop_that_does_nothing_else_measures_it_and_little_is_not_told():
    assert found(AT, "  " + again(40, 0.5, 39)) == []
    assert found(AT, "  " + again(40, 4000, 39)) == []


def test_layers_of_which_each_is_new_now_and_then_are_named_together():
    """An encoder called for each of four words: all of it repeats, three of four times."""
    (one,) = found("python main @ /home/ada/net.py:36",
        "  module encoder [Encoder]",
        "    module encoder.0 [Conv2d]", "      " + again(40, 10, 30, "aten::conv2d"),
        "    module encoder.1 [ReLU]", "      " + again(40, 10, 30, "aten::relu"))  # fmt: skip
    assert one.title.startswith(("encoder ", "main "))
    assert one.lines[0].line == 36
    assert 0 < one.gain.expected_ns < 2 * MS


def test_what_repeats_now_and_then_is_left_alone():
    assert found(AT, "  " + again(40, 20, 10)) == []


def test_an_encoder_that_is_nearly_all_of_the_step_beside_much_that_is_new_measures_nothing():
    (one,) = found(AT, "  python encode @ /home/ada/net.py:7", "    " + again(40, 4000, 39),
                   "  python decode @ /home/ada/net.py:9", "    " + again(400, 40, 0))  # fmt: skip
    assert (one.lines[0].short, one.lines[0].line) == ("net.py", 7)


def test_views_of_what_is_logged_compute_nothing_again():
    lines = ["  python log @ /home/ada/log.py:7", "    " + again(400, 0.1, 399, "aten::detach")]
    assert found(AT, *lines) == []


def test_what_is_the_same_at_every_step_is_told_from_data_that_comes_again_later():
    """Ten steps over four batches, all of which repeat; the prompts beside them are the same from the first step on."""
    (one,) = found(AT, "  python prompts @ /home/ada/net.py:7", "    " + again(10, 2000, 9),
                   "  python images @ /home/ada/net.py:9", "    " + again(10, 1000, 6), "    " + again(10, 1000, 6))  # fmt: skip
    assert (one.lines[0].short, one.lines[0].line) == ("net.py", 7)


def sparse_function(tmp_path, body: str, arguments: str = "edges, n") -> str:
    file = tmp_path / "graph.py"
    file.write_text(f"import torch\n\ndef propagation({arguments}):\n{body}")
    return str(file)


PROPAGATION = """    idx = torch.cat([edges, torch.arange(n).repeat(2, 1)], 1)
    adj = torch.sparse_coo_tensor(idx, torch.ones(idx.shape[1]), (n, n)).coalesce()
    deg = torch.zeros(n).index_add_(0, adj.indices()[0], adj.values())
    return adj, deg.rsqrt()
"""


def propagation(file: str, *lines: str, created: int = 38, indices: int = 38) -> list:
    """Forty calls of it: the sparse tensor's own operators have no number."""
    call = f"    python propagation @ {file}"
    return found(AT, "  python layer @ /home/ada/net.py:52", "    " + again(40, 10, 0),
                 "  python layer @ /home/ada/net.py:51",
                 f"{call}:4 | first_line=3",
                 "      " + again(40, 0.4, indices, "aten::arange"), "      " + again(40, 0.4, indices, "aten::cat"),
                 f"{call}:5 | first_line=3",
                 "      " + again(40, 0.4, created, "aten::ones"),
                 "      " + again(40, 0.4, created, "aten::sparse_coo_tensor"),
                 "      " + again(40, 20, 0, "aten::coalesce"),
                 f"{call}:6 | first_line=3",
                 "      " + again(40, 0.4, 38, "aten::zeros"), "      " + again(40, 4, 0, "aten::index_add_"),
                 f"{call}:7 | first_line=3",
                 "      " + again(40, 1, 0, "aten::rsqrt"), *lines)  # fmt: skip


def test_a_sparse_matrix_made_of_the_same_edges_each_time_is_computed_again(tmp_path):
    (one,) = propagation(sparse_function(tmp_path, PROPAGATION))
    assert (one.lines[0].short, one.lines[0].line) == ("net.py", 51)
    assert one.remedy.startswith("Compute it once")


@pytest.mark.parametrize(("created", "indices"), [(0, 0), (20, 20), (0, 38), (38, 0)])
def test_edges_that_are_sampled_anew_make_another_matrix(created: int, indices: int, tmp_path):
    assert propagation(sparse_function(tmp_path, PROPAGATION), created=created, indices=indices) == []


@pytest.mark.parametrize(
    "line",
    [
        "      " + again(40, 1, 0, "aten::dropout"),
        "      " + again(40, 1, 0, "aten::empty"),
        "      phase backward\n        operator MulBackward0 | time=1000/40 call_time=1000/40",
        "      module scale [Linear]\n        " + again(40, 1, 0),
    ],
)
def test_random_numbers_parameters_and_what_autograd_records_make_it_new(line: str, tmp_path):
    assert propagation(sparse_function(tmp_path, PROPAGATION), *line.split("\n")) == []


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        ("edges, n, x", "    return adj @ x"),
        ("edges, n, *others", "    return adj @ others[0]"),
        ("edges, n, x", "    return adj @ torch.ones(x.shape[1])"),
        ("edges, n", "    return adj @ FEATURES"),
        ("edges, n", "    return adj * scale_of(n)"),
        ("edges, n", "    return scaled(lambda: adj)"),
        ("self, edges, n", "    return adj @ self.features"),
    ],
)
def test_a_function_that_takes_something_else_is_left_alone(arguments: str, last: str, tmp_path):
    body = "".join(line + "\n" for line in [*PROPAGATION.splitlines()[:3], last])
    assert propagation(sparse_function(tmp_path, body, arguments)) == []


def test_what_is_known_of_one_branch_only_is_not_known(tmp_path):
    body = """    idx = torch.cat([edges if n else x, torch.arange(n).repeat(2, 1)], 1)
    adj = torch.sparse_coo_tensor(idx, torch.ones(n), (n, n)).coalesce()
    return adj @ x, n
"""
    assert propagation(sparse_function(tmp_path, body, "edges, n, x")) == []


def test_without_its_source_nothing_is_said_of_it(tmp_path):
    assert propagation(str(tmp_path / "gone.py")) == []
