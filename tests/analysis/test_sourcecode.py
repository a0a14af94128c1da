"""What a line of the user's source stands in, and when a file is no longer what ran."""

from __future__ import annotations

import textwrap

import pytest

from leadline.analysis.sourcecode import Sources, carries_state, inputs_are_known

PROGRAM = textwrap.dedent(
    """
    def main(loader, model):
        with lock:
            for epoch in range(3):
                for x in loader:
                    y = [model(row)
                         for row in x]
                    def later():
                        return model(x)
        return y
    """
).lstrip()


def sources(tmp_path, text=PROGRAM, ended_ns=0, hashes=None):
    (tmp_path / "train.py").write_text(text)
    return Sources(str(tmp_path), ended_ns, hashes)


def test_a_line_knows_its_loops(tmp_path):
    found = sources(tmp_path)
    assert [found.context("train.py", line) for line in range(1, 10)] == [
        "",
        "",
        "",
        "in the loop at line 3, once per iteration",
        "in a comprehension, once per row, 3 loops deep",
        "in a comprehension, once per row, 3 loops deep",
        "in the loop at line 4, once per element, 2 loops deep",
        "",  # a function of its own: it is called from elsewhere
        "",
    ]
    source = found.of("train.py")
    assert [block.kind for block in source.around(5)] == ["function", "with", "loop", "loop", "comprehension"]
    assert source.text(4) == "for x in loader:"


def test_a_file_written_after_the_run_shows_nothing(tmp_path):
    found = sources(tmp_path, ended_ns=1)
    assert found.of("train.py") is None
    assert found.changed == {"train.py"}


def test_a_hash_knows_better_than_the_clock(tmp_path):
    digest = sources(tmp_path).of("train.py").sha256
    assert sources(tmp_path, ended_ns=1, hashes={"train.py": digest}).of("train.py") is not None
    assert sources(tmp_path, hashes={"train.py": "0" * 64}).of("train.py") is None


def test_files_that_cannot_be_read_or_parsed_are_no_error(tmp_path):
    found = sources(tmp_path, "def f(:\n    pass\n")
    assert found.context("train.py", 2) == ""
    assert found.of("train.py").text(2) == "pass"
    assert found.of("absent.py") is None
    assert found.of("<string>") is None
    assert found.of("") is None
    assert found.of("nul\0") is None
    deep = "x = " + "(" * 3000 + ")" * 3000
    assert sources(tmp_path, deep).context("train.py", 1) == ""


def carried(tmp_path, body):
    text = "for x in data:\n" + textwrap.indent(textwrap.dedent(body), "    ")
    loops = sources(tmp_path, text).of("train.py").loops(2)
    return carries_state(loops[-1].node)


def test_a_recurrence_is_told_from_independent_turns(tmp_path):
    assert carried(tmp_path, "h = cell(x, h)\nout.append(h)\n")
    assert not carried(tmp_path, "y = model(x)\nout.append(y)\n")
    assert not carried(tmp_path, "total += model(x)\n")
    assert not carried(tmp_path, "total += model(x)\nif x.last:\n    print(total / 100)\n")
    assert not carried(tmp_path, "total = total + model(x)\n")
    assert carried(tmp_path, "k = f(y)\ny = y + h * k\npath.append(y)\n")
    assert carried(tmp_path, "y += h * f(y)\n")
    assert carried(tmp_path, "y = model(state)\nstate = y + 1\n")
    assert carried(tmp_path, "a = model(env.observe()).sample()\nrewards.append(env.step(a.item()))\n")
    assert carried(tmp_path, "a = int(model(env.observe()).argmax())\nenv.step(a)\n")
    assert not carried(tmp_path, "y = model.encode(x)\nz = model.decode(y)\nlosses.append(z.item())\n")


def test_running_extremes_are_no_recurrence(tmp_path):
    assert not carried(tmp_path, "best = max(best, model(x))\n")
    assert not carried(tmp_path, "d = model(x)\nif best is None or d > best:\n    best = d\n")
    assert not carried(tmp_path, "d = model(x)\nif d > best:\n    best, at = d, x\n")
    assert carried(tmp_path, "d = model(x, best)\nif d > best:\n    best = d\n")
    assert carried(tmp_path, "if model(x) > 0:\n    state = step(state)\n")
    assert carried(tmp_path, "d = model(x)\nif d > best:\n    best = d\n    save(best)\n")


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("h = cell(x, h)\n", True),
        ("h, c = cell(x[:, 0], (h, c))\nout.append(h)\n", True),
        ("h1, c1 = one(x, (h1, c1))\nh2, c2 = two(h1, (h2, c2))\n", True),  # a layer upon another
        ("h, c = cell(y, (h, c))\ny = head(h)\n", False),  # its own output comes back
        ("y = model(x)\n", False),
        ("y = f(x, y) + 1\n", False),
    ],
)
def test_inputs_of_a_recurrence_are_known_before_unless_its_output_comes_back(tmp_path, body, known):
    text = "for x in data:\n" + textwrap.indent(body, "    ")
    assert inputs_are_known(sources(tmp_path, text).of("train.py").loops(2)[-1].node) == known
