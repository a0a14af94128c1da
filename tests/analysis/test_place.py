"""What is known of one place, whatever rule fires: measured, or read in the program's own source at that line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.test_findings import MS, training

from leadline.analysis.analyze import analyze
from leadline.analysis.case import case_of
from leadline.analysis.rules.place import TELLING, facts_of, known_of, sentence_of
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.report.build import build_report
from leadline.report.model import ReportOptions
from leadline.verdict.text import as_lines


def operator(indent: str, name: str, ms: float, calls: int, shapes: str = "", types: str = "", more: str = "") -> str:
    """A line of ten steps; `ms`: of one of them."""
    ns = int(ms * 10 * MS) // calls * calls
    made = ",".join(f'"{key}":{value}' for key, value in (("shapes", shapes), ("types", types)) if value)
    detail = f" detail={{{made}}}" if made else ""
    return f"{indent}operator {name} | time={ns}/{calls} call_time={ns}/{calls}{more}{detail}"


def on_line(*inside: str, file: str | Path = "/home/ada/train.py", line: int = 43, function: str = "main") -> Profile:
    return training(f"python {function} @ {file}:{line}", *("  " + one for one in inside))


def known(profile: Profile, file: str | Path = "/home/ada/train.py", line: int = 43, what: str = "") -> str:
    return known_of(case_of(profile), str(file), line, what)


def test_calls_of_one_line_are_counted_by_step():
    assert known(on_line(operator("", "aten::bmm", 5, 510))) == "is called 51 times a step"
    nested = on_line(operator("", "aten::sort", 0, 10), operator("  ", "aten::sort", 5, 10))
    assert known(nested) == "is called once a step"


def test_where_few_calls_take_most_their_mean_is_not_said():
    """One table of many rows among twelve small ones, as an optimizer goes through parameters."""
    small = [operator("", "aten::sqrt", 0.01, 10, f"[[{size}]]") for size in range(64, 76)]
    said = known_of(
        case_of(on_line(operator("", "aten::sqrt", 5, 10, "[[400000,32]]"), *small)),
        "/home/ada/train.py", 43, "aten::sqrt", 5.12 * MS,
    )  # fmt: skip
    assert "is called 13 times a step, 97.7 % of its time in one of them, 5.00 ms; works on [400000, 32]" in said
    heads = [
        "module model.lm_head [Linear]",
        *("  " + operator("", "aten::mm", 0.5, 1, f"[[{size},256],[256,32000]]") for size in range(900, 910)),
        *(line for layer in range(8) for line in (
            f"module model.layers.{layer} [Linear]", "  " + operator("", "aten::mm", 0.05, 10, "[[900,256],[256,256]]"),
        )),
    ]  # fmt: skip
    said = known_of(case_of(on_line(*heads)), "/home/ada/train.py", 43, "aten::mm", 5.4 * MS)
    assert "is called 9 times a step for 9 modules, 92.6 % of its time in one of them (model.lm_head), 5.00 ms" in said


@pytest.mark.parametrize(
    ("calls", "over"),
    [(3, "over the run"), (10, "within each step")],
)
def test_inputs_that_grow_are_told_with_their_first_and_last_shape(calls, over):
    sizes = (4096, 8192, 12288, 16384)
    lines = [operator("", "aten::sort", 1, calls, f"[[{size}],[]]") for size in sizes]
    assert f"works on inputs that grow from [4096] to [16384] {over}" in known(on_line(*lines))


def test_inputs_of_many_sizes_and_layers_of_many_shapes_do_not_grow():
    sizes = [operator("", "aten::sort", 1, 3, f"[[{size}]]") for size in (9, 400, 20, 300, 100)]
    assert "works on 5 sizes of inputs, from [9] to [400]" in known(on_line(*sizes))
    layers = [
        operator("", "aten::mm", 1, 10, shapes) for shapes in ("[[8,2],[2,8]]", "[[64,8],[8,9]]", "[[512,64],[64,9]]")
    ]
    assert "grow" not in known(on_line(*layers))


def test_shapes_that_are_broadcast_are_told_and_products_are_not():
    assert known(on_line(operator("", "aten::sub", 5, 10, "[[2048],[2048,1],[]]"))).startswith(
        "broadcasts [2048] and [2048, 1] to [2048, 2048]"
    )
    assert "broadcast" not in known(on_line(operator("", "aten::mm", 5, 10, "[[2048,1],[1,2048]]")))


def test_types_are_told_where_they_are_not_the_usual_one():
    said = known(on_line(operator("", "aten::addmm", 5, 10, "[[8,8],[8,8]]", '["double","double"]')))
    assert said.startswith("computes in float64")
    copied = on_line(operator("", "aten::copy_", 5, 10, "[[8],[8]]", '["float","double"]'))
    assert known(copied).startswith("converts float64 to float32")
    assert "float32" not in known(on_line(operator("", "aten::addmm", 5, 10, "[[8,8],[8,8]]", '["float","float"]')))


def test_a_hook_is_named_where_the_framework_calls_it_and_not_where_the_program_does(tmp_path):
    file = tmp_path / "net.py"
    file.write_text("def watch(module, args, out):\n  seen.append(out.kthvalue(9))\n\nm.register_forward_hook(watch)\n")
    inside = [f"python watch @ {file}:2", operator("  ", "aten::kthvalue", 5, 10)]
    hooked = training(
        "python main @ /home/ada/train.py:43", "  module model.head [Linear]", *("    " + one for one in inside)
    )
    assert known(hooked, file, 2).startswith("runs in a forward hook, watch")
    called = training("python main @ /home/ada/train.py:43", *("  " + one for one in inside))
    assert "hook" not in known(called, file, 2)


def test_libraries_say_for_what_a_line_runs():
    library = "/usr/lib/python3.11/site-packages/torch/optim/lr_scheduler.py"
    profile = on_line(f"python LRScheduler.step @ {library}:10", operator("  ", "aten::mul", 5, 10))
    assert known(profile).startswith("runs in a learning-rate scheduler")


SOURCES = {
    "rows = self.table[self.table['customer'] == self.customers[i]]": (
        "compares all of self.table['customer'] to select from it"
    ),
    "self.obs = self.obs.at[i].set(obs)": "copies all of self.obs to change a part of it",
    "self.queue = torch.cat([keys, self.queue[:-16]])": "copies all of self.queue to add to it",
    "chosen = np.random.choice(n, k, p=p)": "goes through all of p to draw from it",
    "p = self.priority[:self.size] ** self.alpha": "computes on all of self.priority[:self.size]",
    "y = copy.deepcopy(model)": "copies an object with all it holds",
    "x = np.load(path)['x']": "reads a file, by np.load",
    "dense = adj.to_dense() @ x": "makes a sparse matrix dense",
    "members = np.flatnonzero(self.labels == name)": "compares all of self.labels to select from it",
    "words = re.sub(r'\\W', ' ', text)": "matches the regular expression '\\\\W'",
    "y = table.price.map(lambda one: one + 1)": "calls Python for each element of table.price",
    "loss.backward(retain_graph=True)": "keeps the graph for another backward pass",
    "first = self.items.pop(0)": "moves all of self.items to take the first",
}


def from_source(tmp_path: Path, body: str, after: str = "return use(locals())", what: str = "") -> str:
    file = tmp_path / "data.py"
    file.write_text(f"class Data:\n  def get(self, i):\n    {body}\n    {after}\n")
    inside = operator("", what, 5, 10) if what else f"native work | cpu_sample={50 * MS}/50"
    return known(on_line(inside, file=file, line=3, function="Data.get"), file, 3, what)


def test_a_module_that_joins_its_input_with_another_tensor_adds_to_nothing(tmp_path):
    file = tmp_path / "net.py"
    for name, kept in (("forward", False), ("remember", True)):
        file.write_text(f"def {name}(self, x, skip):\n  x = torch.cat([x, skip], 1)\n  return use(x)\n")
        profile = on_line(operator("", "aten::cat", 5, 10), file=file, line=2, function=name)
        assert ("copies all of x to add to it" in known(profile, file, 2)) == kept


@pytest.mark.parametrize(("text", "said"), SOURCES.items())
def test_the_source_says_what_a_line_goes_through(tmp_path: Path, text: str, said: str) -> None:
    assert said in from_source(tmp_path, text).split("; ")


@pytest.mark.parametrize(
    "text",
    [
        "rows = self.table[i]",
        "x = x[mask is None]",
        "self.obs = self.obs.set(obs)",
        "both = torch.cat([keys, queries])",
        "chosen = np.random.choice(n)",
        "p = self.scale * x",
        "y = self.model(x)",
        "loss.backward(retain_graph=False)",
        "y = np.where(mask, a, b)",
        "y = self.query(x)",
    ],
)
def test_what_is_usual_is_not_said(tmp_path: Path, text: str) -> None:
    assert from_source(tmp_path, text) == ""


def test_results_of_which_a_part_is_read_or_none_are_told(tmp_path: Path) -> None:
    part = from_source(tmp_path, "values, at = x.sort(-1)", "return values[:, :5]", "aten::sort")
    assert part.startswith("makes a result of which only values[:, :5] is read")
    none = from_source(tmp_path, "unused = self.model(i)", "return i", "aten::mm")
    assert none.startswith("makes unused, which nothing reads")
    assert "read" not in from_source(tmp_path, "used = self.model(i)", "return used", "aten::mm")


@pytest.mark.parametrize(("stack", "told"), [(("scorer.enc",), True), (("scorer.enc", "scorer.enc.layers.0"), False)])
def test_an_operator_inside_of_a_stack_makes_no_result_of_the_line(tmp_path: Path, stack, told: bool) -> None:
    """What the first layer computes, the second one reads whole."""
    file = tmp_path / "data.py"
    file.write_text("class Data:\n  def get(self, i):\n    return self.enc(i)[:, -1]\n")
    modules = [f"{'  ' * depth}module {name} [Layer]" for depth, name in enumerate(stack)]
    profile = on_line(*modules, operator("  " * len(stack), "aten::mm", 5, 10), file=file, line=3, function="Data.get")
    assert ("makes a result of which only" in known(profile, file, 3, "aten::mm")) == told


@pytest.mark.parametrize("what", ["aten::multinomial", "aten::_softmax", ""])
def test_a_draw_is_told_where_it_takes_the_time(tmp_path: Path, what: str) -> None:
    said = from_source(tmp_path, "chosen = torch.multinomial(p, 1)", what=what)
    assert ("goes through all of p to draw from it" in said) == (what == "aten::multinomial")


def test_a_step_before_one_that_changes_the_size_works_on_the_original_size(tmp_path: Path) -> None:
    file = tmp_path / "load.py"
    file.write_text(
        "def blur(image):\n  return image.filter(GAUSS)\n\nsteps = Compose([decode, blur, resize, to_tensor])\n"
    )
    blurs = on_line(f"native work | cpu_sample={50 * MS}/50", file=file, line=2, function="blur")
    assert known(blurs, file, 2) == "runs before resize, so on the original size"
    file.write_text(
        "def blur(image):\n  return image.filter(GAUSS)\n\nsteps = Compose([decode, resize, blur, to_tensor])\n"
    )
    after = on_line(f"native work | cpu_sample={50 * MS}/50", file=file, line=2, function="blur")
    assert known(after, file, 2) == ""


def test_what_a_compiled_program_updates_is_not_said_to_be_copied(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("def step(x):\n  return x.at[0].set(1)\n")
    inside = [f"python step @ {file}:2", operator("  ", "scatter", 5, 10)]
    compiled = training(
        "python main @ /home/ada/train.py:43", "  operator jit(step)", *("    " + one for one in inside)
    )
    assert "copies" not in known(compiled, file, 2)
    assert "copies all of x" in known(training(*inside), file, 2)


def test_the_loop_of_the_steps_is_not_said_and_another_one_is(tmp_path: Path) -> None:
    file = tmp_path / "fit.py"
    file.write_text("def fit(loader):\n  for batch in loader:\n    for one in batch:\n      use(one)\n    step()\n")
    phase = f"phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10"
    work = f"native work | cpu_sample={50 * MS}/50"

    def said(line: int) -> str:
        lines = (f"python fit @ {file}:5", "  " + phase, f"python fit @ {file}:{line}", "  " + work)
        profile = build(
            "\n".join(("process fit.py | pid=5", "  thread main | tid=5", *("    " + one for one in lines)))
        )
        return known(profile, file, line)

    assert said(4) == "runs for each of batch, in the loop at line 3"
    assert said(3) == ""


def test_growth_by_part_of_the_run_is_told_where_shapes_are_not_known():
    profile = on_line(operator("", "aten::cat", 5, 30))
    row = {"file": "/home/ada/train.py", "line": 43, "function": "main", "what": "aten::cat"}
    profile.meta["growth"] = [row | {"steps": [3, 3, 3], "calls": [9, 9, 9], "ns": [9 * MS, 18 * MS, 36 * MS]}]
    assert "takes 1.00 ms a call early in the run and 4.00 ms late" in known(profile)
    steady = on_line(operator("", "aten::cat", 5, 30))
    steady.meta["growth"] = [row | {"steps": [3, 3, 3], "calls": [9, 9, 9], "ns": [9 * MS, 10 * MS, 9 * MS]}]
    assert "early" not in known(steady)


def growing(sizes: tuple[int, ...], what: str = "aten::sort", ms: float = 1, running: float = 1) -> list[str]:
    """Titles of `grows` for a path whose calls take ever longer on a machine that others use, beside steady ones."""
    lines = [operator("", what, 2, 3, f"[[{size}],[]]") for size in sizes]
    profile = on_line(*lines, "native [waits for a core] | wait=900000000/9")
    row = {"file": "/home/ada/train.py", "line": 43, "function": "main", "what": what}
    unit = int(ms * MS)
    profile.tables["threads"]["cpu_ns"][:] = running * profile.tables["threads"]["wall_ns"]
    steady = {**row, "steps": [3, 3, 3], "calls": [9, 9, 9], "ns": [9 * unit, 9 * unit, 9 * unit]}
    profile.meta["growth"] = [
        {**steady, "ns": [9 * unit, 30 * unit, 90 * unit]},
        *({**steady, "line": 50 + one, "what": f"aten::op{one}"} for one in range(4)),
    ]
    return [one.title for one in analyze(profile, ["grows"])]


def test_calls_on_inputs_as_large_as_before_have_not_grown():
    (title,) = growing((1000, 2000, 4000, 8000))
    assert title == "aten::sort takes 10 times as long late in the run as early, call by call"
    assert growing((4000,)) == []
    assert len(growing((4000,), "aten::mul")) == 1  # numbers may have become denormal


@pytest.mark.parametrize(("queries", "named"), [("1", False), ("SIZE", True)], ids=["new token", "whole text"])
def test_attention_to_a_cache_grows_with_the_text(queries: str, named: bool) -> None:
    name, sizes = "aten::scaled_dot_product_attention", (100, 200, 400, 800)
    shapes = f"[[2,{queries},8],[2,SIZE,8],[2,SIZE,8]]"
    profile = on_line(*(operator("", name, 2, 3, shapes.replace("SIZE", str(size))) for size in sizes))
    row = {"file": "/home/ada/train.py", "line": 43, "function": "main", "steps": [3, 3, 3], "calls": [9, 9, 9]}
    others = [{**row, "line": 50 + one, "what": f"aten::op{one}", "ns": [9 * MS] * 3} for one in range(4)]
    profile.meta["growth"] = [{**row, "what": name, "ns": [9 * MS, 30 * MS, 90 * MS]}, *others]
    assert bool(analyze(profile, ["grows"]).findings) == named


def test_a_call_that_stood_in_line_for_a_core_has_not_grown() -> None:
    sizes = (1000, 2000, 4000, 8000)
    assert len(growing(sizes, ms=0.1)) == 1
    assert growing(sizes, ms=0.1, running=0.5) == []  # 8 ms more in all, on a thread that waited for as long as it ran
    assert len(growing(sizes, ms=10, running=0.5)) == 1


def test_a_line_of_many_operators_that_grow_is_named_beside_lines_that_do_not(tmp_path: Path) -> None:
    lines = [operator("", "aten::sort", 2, 3, f"[[{size}],[]]") for size in (1000, 2000, 4000, 8000)]
    row = {"file": "/home/ada/train.py", "line": 43, "function": "main", "steps": [3, 3, 3], "calls": [9, 9, 9]}
    names = ("sort", "index", "cat", "add", "arange", "fill_", "copy_")
    more = [{**row, "what": f"aten::{one}", "ns": [9 * MS, 30 * MS, 90 * MS]} for one in names]

    def titles(others: list[dict[str, object]]) -> list[str]:
        profile = on_line(*lines)
        profile.meta["growth"] = [{**more[0], "ns": [9 * MS, 90 * MS, 270 * MS]}, *more[1:], *others]
        return [one.title for one in analyze(profile, ["grows"])]

    steady = [{**row, "line": 23 + one, "what": "aten::mm", "ns": [90 * MS, 90 * MS, 90 * MS]} for one in range(3)]
    assert len(titles(steady)) == 1
    larger = [{**one, "ns": [9 * MS, 30 * MS, 90 * MS]} for one in steady]
    assert titles(larger) == []  # all batches became larger


def test_buffers_that_ddp_sends_and_arrays_of_an_npz_file_are_told(tmp_path: Path) -> None:
    packages = "/usr/lib/python3.11/site-packages"
    sends = f"python DistributedDataParallel._sync_module_buffers @ {packages}/torch/nn/parallel/distributed.py:9"
    assert "runs to send the module's buffers to all ranks" in known(
        on_line(sends, operator("  ", "c10d::broadcast_", 5, 10))
    )
    (finding,) = analyze(on_line(sends, operator("  ", "c10d::broadcast_", 5, 10)), ["communication"])
    assert "broadcast_buffers=False" in finding.remedy
    (finding,) = analyze(on_line(operator("", "c10d::allreduce_", 5, 10)), ["communication"])
    assert "broadcast_buffers" not in finding.remedy
    file = tmp_path / "data.py"
    file.write_text("class Data:\n  def __getitem__(self, i):\n    return self.archive['x'][i]\n")
    reads = f"python NpzFile.__getitem__ @ {packages}/numpy/lib/npyio.py:9 | cpu_sample={50 * MS}/50"
    assert "reads all of an array from the .npz file" in known(on_line(reads, file=file, line=3), file, 3)


def test_an_ordinary_layer_is_described_and_nothing_of_it_alarms():
    layer = on_line(operator("", "aten::addmm", 6, 10, "[[192],[128,192],[192,192]]", '["float","float","float"]'))
    facts = facts_of(case_of(layer), "/home/ada/train.py", 43)
    assert [one.text for one in facts] == ["is called once a step", "works on [128, 192] and [192, 192]"]
    assert all(one.tells < TELLING for one in facts)
    assert [one for one in analyze(layer) if one.severity.value == "warning"] == []


def test_why_report_and_findings_say_one_sentence_of_the_place():
    profile = on_line(operator("", "aten::sub", 30, 10, "[[4096],[4096,1],[]]"))
    verdict = profile.verdict
    sentence = verdict.because[0]
    assert sentence.startswith("aten::sub at train.py:43 broadcasts [4096] and [4096, 1] to [4096, 4096]")
    assert sentence in " ".join(" ".join(as_lines(verdict)).split())
    report = build_report(profile, ReportOptions(verdict=True))
    assert report.verdict is not None and sentence in report.verdict.because
    assert report.start is not None and sentence in " ".join(report.start.text.split())


def test_few_samples_and_all_operators_alike_are_no_growth() -> None:
    """On a machine that others use: 27 samples of 100 calls against 21 of 35, where the others' say as much."""

    def titles(samples: int, others: int) -> list[str]:
        profile = on_line(
            f"operator aten::mm | time={9 * MS}/9 call_time={9 * MS}/9", "native [waits for a core] | wait=900000000/9"
        )
        profile.tables["threads"]["cpu_ns"][:] = profile.tables["threads"]["wall_ns"] // 2
        row = {"file": "/home/ada/train.py", "line": 43, "function": "main", "steps": [20, 20, 7]}
        row |= {"calls": [100, 100, 35], "ns": [9 * MS, 18 * MS, 9 * MS]}
        late = [int(one * samples / 25) for one in (27, 60, 21)]
        many = [[10, 20, others]] * 4
        profile.meta["growth"] = [
            {**row, "what": what, "samples": one, "sampled_ns": [each * 20 * MS for each in one]}
            for what, one in (("aten::mm", late), *((f"aten::op{i}", one) for i, one in enumerate(many)))
        ]
        return [one.title for one in analyze(profile, ["grows"])]

    assert titles(25, 4) == []  # twice as many a call as of the others, but by chance
    assert titles(1000, 4) and titles(1000, 8) == []  # beyond chance, unless the others did the same


@pytest.mark.parametrize(
    ("thread", "said"),
    [("", ""), ("  thread loader | tid=6\n", "is called 51 times a step; runs on the thread loader")],
)
def test_of_set_up_nothing_is_said_that_reads_as_if_steps_did_it(thread: str, said: str):
    """Nothing is known of a line outside of the loop, unless another thread runs it beside the steps."""
    encode = f"    python encode @ /home/ada/data.py:9\n  {operator('    ', 'aten::sort', 5, 510)}\n"
    profile = build(
        "process train.py | pid=5\n  thread MainThread | tid=5\n"
        + ("" if thread else encode)
        + "    python main @ /home/ada/train.py:41\n      python step @ /home/ada/train.py:43\n"
        + f"  {operator('      ', 'aten::mm', 5, 10)}\n"
        + f"      python step @ /home/ada/train.py:44\n        phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10\n"
        + (thread + encode if thread else "")
    )
    assert known(profile, "/home/ada/data.py", 9) == said


def test_time_that_is_not_an_operators_is_not_shared_out_among_its_calls() -> None:
    """A line compiles for 700 ms a step, and two operators run below it."""
    profile = on_line(operator("", "aten::mm", 5, 20))
    case = case_of(profile)
    with_time = sentence_of(case, "main", "/home/ada/train.py", 43, "", 700e6)
    assert "is called" not in with_time
    assert "is called 2 times a step" in sentence_of(case, "aten::mm", "/home/ada/train.py", 43, "aten::mm", 5e6)
