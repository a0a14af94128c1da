"""Facts of a place that name the cause and what to do instead: in the source, by samples below the line, by shapes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.test_findings import MS, training
from tests.analysis.test_place import known, on_line, operator

from leadline.analysis.analyze import analyze
from leadline.analysis.case import case_of
from leadline.analysis.rules.place import instead_at
from leadline.profiles.build import build

SAMPLES = f"native work | cpu_sample={50 * MS}/50"


def at_line(tmp_path: Path, text: str, line: int, inside: str = SAMPLES, function: str = "get") -> tuple[str, str]:
    """What is known of a line of a program, and what to do instead."""
    file = tmp_path / "data.py"
    file.write_text(text)
    profile = on_line(inside, file=file, line=line, function=function)
    return known(profile, file, line), instead_at(case_of(profile), str(file), line)


SHELVES = "class Hall:\n  def __init__(self):\n    self.shelves = {made}\n{more}  def get(self, cell):\n    return cell in self.shelves\n"
FILLED = "    for x in range(9): self.shelves.append(x)\n"


@pytest.mark.parametrize(
    ("made", "more", "is_list"),
    [
        ("[]", FILLED, True),
        ("list(given)", "", True),
        ("[x for x in range(9)]", "", True),
        ("set()", FILLED.replace("append", "add"), False),
        ("given", "", False),
        ("['train', 'eval']", "", False),
    ],
)
def test_a_list_that_is_searched_by_in_is_told_and_other_containers_are_not(tmp_path, made, more, is_list):
    text = SHELVES.format(made=made, more=more)
    said, instead = at_line(tmp_path, text, text.count("\n"))
    assert ("looks for cell in the list self.shelves" in said) == is_list
    assert instead.startswith("Make self.shelves a set") == is_list


def test_a_module_is_no_list_that_is_searched(tmp_path):
    said, _ = at_line(tmp_path, "import os\ndef get(path):\n  os.remove(path)\n", 3)
    assert "searches" not in said
    said, _ = at_line(tmp_path, "def get(path, seen):\n  seen.remove(path)\n", 2)
    assert "searches seen from its start" in said


def test_a_query_is_told_with_its_text(tmp_path):
    text = 'def get(db, day):\n  return db.execute(\n    "SELECT a FROM t"\n    " WHERE day = ?", (day,)).fetchall()\n'
    said, instead = at_line(tmp_path, text, 2)
    assert "runs the query SELECT a FROM t WHERE day = ?" in said
    assert "EXPLAIN QUERY PLAN" in instead
    assert "query" not in at_line(tmp_path, "def get(pool, work):\n  return pool.execute(work)\n", 2)[0]


LIBRARY = "/usr/lib/python3.11"


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("re/_compiler.py", "spends 75 % of it compiling regular expressions again"),
        ("site-packages/matplotlib/figure.py", "spends 75 % of it drawing a figure"),
        ("zipfile.py", "spends 75 % of it reading compressed files"),
        ("json/decoder.py", ""),
    ],
)
def test_libraries_below_a_line_say_what_its_time_is_for(tmp_path, file, words):
    inside = [
        f"native work | cpu_sample={25 * MS}/25",
        f"python work @ {LIBRARY}/{file}:9 | cpu_sample={75 * MS}/75",
    ]
    source = tmp_path / "data.py"
    source.write_text("def get(text):\n  return clean(text)\n")
    profile = on_line(*inside, file=source, line=2, function="get")
    said = known(profile, source, 2)
    assert ("spends" in said) == bool(words) and words in said


@pytest.mark.parametrize(
    ("file", "calls", "found", "converts"),
    [
        ("transformers/logits_process.py", 10, True, True),
        ("transformers/logits_process.py", 10_000, True, False),  # little for each: the calling of an operator
        ("torch/nn/modules/module.py", 10, False, False),  # a framework runs what others wrote
    ],
)
def test_a_librarys_line_that_takes_most_is_named_and_what_it_turns_into_tensors(
    tmp_path, file, calls, found, converts
):
    inside = [
        f"native work | cpu_sample={25 * MS}/25",
        f"python __call__ @ {LIBRARY}/site-packages/{file}:98 | cpu_sample={75 * MS}/75",
        f"  operator aten::index_put_ | time={MS}/{calls} call_time={MS}/{calls}",
    ]
    source = tmp_path / "data.py"
    source.write_text("def get(model):\n  return model.generate()\n")
    profile = on_line(*inside, file=source, line=2, function="get")
    said, instead = known(profile, source, 2), instead_at(case_of(profile), str(source), 2)
    assert (f"spends 75 % of it in __call__ ({file}:98)" in said) == found
    assert ("turning Python's values into tensors" in said) == converts
    assert instead.startswith("Give __call__ a tensor") == converts


SKIPS = "def rows(file, worker, total):\n  for number, line in enumerate(file):\n    sample = parse(line)\n{test}    yield sample\n"


@pytest.mark.parametrize(
    ("test", "thrown"),
    [
        ("    if number % total != worker:\n      continue\n", "number % total != worker (line 4)"),
        ("    if sample is None:\n      continue\n", ""),
        ("    if number % total != worker:\n      print(line)\n", ""),
        ("    sample = sample + 1\n    if number % total != worker:\n      continue\n", ""),
    ],
)
def test_results_that_are_made_before_the_test_that_throws_them_away(tmp_path, test, thrown):
    said, instead = at_line(tmp_path, SKIPS.format(test=test), 3, function="rows")
    assert ("discarded where" in said) == bool(thrown) and thrown in said
    assert instead.startswith("Test number % total != worker first") == bool(thrown)


def test_the_same_where_the_time_is_in_the_function_that_is_called(tmp_path):
    file = tmp_path / "data.py"
    file.write_text(
        SKIPS.format(test="    if number % total != worker:\n      continue\n")
        + "def parse(line):\n  return eval(line)\n"
    )
    profile = training(f"python rows @ {file}:3", f"  python parse @ {file}:8 | cpu_sample={50 * MS}/50")
    assert "makes a result of line 3 that is discarded" in known(profile, file, 8)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = next(iter(loader))", "makes a new iterator of loader to take one item of it"),
        ("x = next(batches)", ""),
        (
            "rows = jax.random.choice(key, ROWS, (512,), replace=False)",
            "shuffles all of ROWS to draw without replacement",
        ),
        ("rows = np.random.choice(n, 64, replace=False)", "shuffles all of n to draw without replacement"),
        ("rows = np.random.choice(n, 64)", ""),
        ("rows = torch.randperm(n)[:64]", "shuffles all of n to take the first"),
        ("rows = torch.randperm(n)", ""),
    ],
)
def test_calls_that_do_more_than_they_are_asked_for(tmp_path, text, words):
    said, instead = at_line(tmp_path, f"def get(n, key, loader):\n  {text}\n  return locals()\n", 2)
    assert words in said
    assert bool(instead) == bool(words)


@pytest.mark.parametrize(
    ("name", "shapes", "window"),
    [
        ("aten::convolution", "[[8,1,12000],[1,1,1024],[]]", "1,024"),
        ("aten::convolution_backward", "[[8,1,12000],[8,1,13023],[1,1,1024]]", "1,024"),
        ("aten::convolution", "[[8,3,224,224],[64,3,7,7],[64]]", ""),
        ("aten::convolution", "[[8,3,224,224],[64,3,31,31],[64]]", "31 x 31"),
    ],
)
def test_windows_that_are_long_enough_for_fft(name, shapes, window):
    profile = on_line(operator("", name, 5, 10, shapes))
    assert ("convolves directly with a window of" in known(profile)) == bool(window) and window in known(profile)


def test_an_operator_with_a_hidden_cost_says_it_also_below_its_parts():
    own = on_line(operator("", "aten::embedding_renorm_", 5, 10))
    assert known(own).startswith("renormalises each row that is looked up")
    parts = on_line(operator("", "aten::unique_dim", 0, 10), operator("  ", "aten::select", 5, 9000))
    assert "is what aten::unique_dim calls, which sorts whole rows" in known(parts)


COND = """import jax
def step(x):
  return jax.lax.cond(x.sum() > 0, dear, cheap, x)
def dear(x):
  return x @ x
def cheap(x):
  return x
def main(xs):
  return {call}(xs)
"""


@pytest.mark.parametrize(("call", "both"), [("jax.vmap(step)", True), ("step", False)])
def test_a_condition_below_vmap_computes_both_branches(tmp_path, call, both):
    file = tmp_path / "data.py"
    file.write_text(COND.format(call=call))
    inside = ["operator jit(main) | time=0/10", f"  python dear @ {file}:5", operator("    ", "dot", 5, 10)]
    profile = training("python main @ /home/ada/train.py:43", *("  " + one for one in inside))
    assert ("computes all branches of jax.lax.cond (line 3)" in known(profile, file, 5)) == both


@pytest.mark.parametrize(("call", "words"), [("jax.jacfwd(predict)", "below jacfwd (line 3)"), ("predict", "")])
def test_what_runs_below_a_jacobian_says_so(tmp_path: Path, call: str, words: str) -> None:
    file = tmp_path / "filter.py"
    file.write_text(f"import jax\ndef update(x):\n  return {call}(x)\ndef predict(x):\n  return x @ x\n")
    inside = [
        "operator jit(update) | time=0/10",
        f"  python update @ {file}:3",
        f"    python predict @ {file}:5",
        operator("      ", "dot", 5, 10),
    ]
    profile = training("python main @ /home/ada/train.py:43", *("  " + one for one in inside))
    assert ("jacfwd" in known(profile, file, 5)) == bool(words) and words in known(profile, file, 5)


def test_a_remedy_that_the_place_knows_is_the_findings_and_the_verdicts(tmp_path):
    file = tmp_path / "data.py"
    file.write_text("def get(x):\n  y = f(x)\n  return y\n")
    profile = on_line(
        operator("", "aten::conv1d", 8, 10, "[[8,1,12000],[1,1,1024],[]]"), file=file, line=2, function="get"
    )
    (found,) = [one for one in analyze(profile) if one.rule in ("hotspot", "not_explained") and one.of_place]
    assert found.severity.value == "warning" and found.remedy.startswith("Convolve by FFT")
    assert found.measured_by == "leadline prove BEFORE.py AFTER.py" and not found.fix
    assert any(one.do.startswith("Convolve by FFT") for one in profile.verdict.fixes)


@pytest.mark.parametrize(
    ("name", "said"), [("writer", "runs on the thread writer"), ("python", "runs on another thread")]
)
def test_a_thread_beside_the_loop_is_named_where_somebody_named_it(name: str, said: str) -> None:
    profile = build(
        f"""
        process train.py | pid=5
          thread MainThread | tid=5 wall_ns=100000000
            python main @ /home/ada/train.py:60
              phase forward
                operator aten::linear | time=90000000/10 call_time=90000000/10
              phase optimizer | time=1000000/10 call_time=1000000/10
          thread {name} | tid=6 wall_ns=100000000
            python Writer.run @ /home/ada/train.py:31 | cpu_sample=50000000/50
        """
    )
    assert said in known(profile, line=31)
