"""Tools over a real PyTorch on the CPU: known answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.eventtools.conftest import Ran, Runner

from leadline.cli.main import main
from leadline.report.tools import tool_results

pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")

DOCS = Path(__file__).resolve().parents[2] / "docs/how-to/tools.md"
PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 64, bias=False) for _ in range(4)])
    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x

net = Net()
x = torch.ones(8, 64)
for step in range(3):
    net(x).sum().backward()
"""


def three_tools() -> str:
    return next(block for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.S) if "class NaNs" in block)


def test_the_three_tools_of_the_page_run_as_printed(run: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    program = PROGRAM.replace("x = torch.ones", "net.layers[2].weight.data[3, 3] = float('nan')\nx = torch.ones")
    ran = run(program, tools=three_tools())
    assert ran.code == 0, ran.err
    counts = {row["name"]: row["count"] for row in ran.table("KernelCount", "kernels")}
    assert counts["aten::mm"] == 3 * (4 + 4 + 3)  # forward, gradients of weights, of inputs but the first
    assert counts["aten::relu"] == 3 * 4
    assert "aten::t" not in counts and "aten::detach" not in counts  # views
    sets = {row[""]: row for row in ran.table("WorkingSet")}
    assert (
        sets["whole"]["max"] == 3 * 64 * 64 * 4
    )  # addition of a weight's gradient: two read, one written, in place: two
    assert "layers.2" not in ran.found("NaNs")["first"].split("→")[0]
    assert "program.py:15" in ran.found("NaNs")["first"]
    assert "NaNs: first at program.py:15" in ran.err
    assert "kernels" in ran.err  # the summary shows the tables
    assert main(["report", str(run.folder / "out.leadline"), "--tool", "KernelCount"]) == 0
    shown = capsys.readouterr().out
    assert "aten::mm" in shown and "net.layers.0" in shown
    assert main(["report", str(run.folder / "out.leadline"), "--tool", "all", "--format", "json"]) == 0
    assert [one["tool"] for one in json.loads(capsys.readouterr().out)] == ["KernelCount", "WorkingSet", "NaNs"]
    assert main(["report", str(run.folder / "out.leadline"), "--tool", "Other"]) == 2


def test_nan_in_a_layer_is_found_at_its_operator_and_line(run: Runner) -> None:
    tools = """
    class Where(Tool):
        events = {"value": ["launch", "object", "nan", "clean"]}
        def start(self): self.rows = []
        def value(self, b):
            for row in range(len(b)):
                place = int(b["place"][row])
                self.rows.append({"line": self.places.line(place), "module": self.places.module(place),
                                  "operator": self.places.operator(place), "nan": int(b["nan"][row]), "clean": int(b["clean"][row])})
        def finish(self, out): out.table("where", self.rows)
    """
    program = """
    import torch
    from torch import nn
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    x = torch.ones(3, 4)
    y = net(x)
    z = torch.log(y - y.max() - 1)
    w = z + 1
    """
    rows = run(program, tools=tools).table("Where")
    assert rows[0] == {"line": "program.py:7", "module": "", "operator": "aten::log", "nan": 6, "clean": 1}
    assert rows[1]["operator"] == "aten::add" and rows[1]["clean"] == 0


def test_ranges_choose_launches_layers_phases_and_names(run: Runner) -> None:
    ran = run(
        PROGRAM, "--layer", r"layers\.2$", "--phase", "backward", tools=three_tools().split("class WorkingSet")[0]
    )
    rows = {row["name"]: row["count"] for row in ran.table("KernelCount")}
    assert rows["aten::mm"] == 3 * 2
    assert set(rows) <= {"aten::mm", "aten::add_"}
    assert ran.found("KernelCount")["launches_left_out"] > 0
    paper = run(
        PROGRAM, tools=three_tools().split("class WorkingSet")[0], env={"START_GRID_ID": "5", "END_GRID_ID": "9"}
    )
    assert sum(row["count"] for row in paper.table("KernelCount")) == 5


BAD_TOOLS = """
class Good(Tool):
    events = {"launch": ["kernel"]}
    def start(self): self.n = self.counter()
    def launch(self, b): self.n.add(b["kernel"])
    def finish(self, out): out.table("kernels", self.n)

class Raises(Tool):
    events = {"launch": ["kernel"]}
    def launch(self, b):
        raise ValueError("my own fault")

class Sleeps(Tool):
    events = {"launch": ["kernel"]}
    def launch(self, b):
        import time
        time.sleep(30)

class Writes(Tool):
    events = {"launch": ["kernel"]}
    def launch(self, b): b["kernel"][0] = 7
"""


def test_a_tool_that_raises_sleeps_or_writes_ends_alone(run: Runner) -> None:
    ran = run(PROGRAM + "\nprint('the program ends well')\n", tools=BAD_TOOLS)
    assert ran.code == 0
    assert "the program ends well" in ran.out
    assert sum(row["count"] for row in ran.table("Good")) > 50
    assert ran.found("Raises")["problem"] == "ValueError: my own fault (mine.py:11)"
    assert "longer than 5 s" in ran.found("Sleeps")["problem"]
    assert "read-only" in ran.found("Writes")["problem"]
    lost = [(str(loss.kind), loss.count) for loss in ran.profile.losses]
    lost = [one for one in lost if one[0] != "provider_unavailable"]  # a torch built for CUDA on a machine without
    assert lost == [("tool_ended", 1)] * 3  # a sentence for each


@pytest.mark.parametrize(
    ("tools", "sentence"),
    [
        (
            "class T(Tool):\n    events = {'barrier': ['pc']}\n    def barrier(self, b): pass\n",
            "give it --backend sanitizer",
        ),
        (
            "class T(Tool):\n    events = {'launch': ['speed']}\n    def launch(self, b): pass\n",
            "launch.speed, which does not exist",
        ),
        ("class T(Tool):\n    events = {'launch': ['kernel']}\n", "has no method of that name"),
        ("class T(Tool)\n    pass\n", "mine.py:1 cannot be loaded"),
        ("x = 1\n", "has no class that is a Tool"),
    ],
)
def test_what_cannot_work_is_refused_before_the_program_starts(run: Runner, tools: str, sentence: str) -> None:
    ran = run("print('started')", tools=tools)
    assert ran.code == 2
    assert "started" not in ran.out
    assert sentence in ran.err, ran.err


def test_a_gpu_text_that_does_not_compile_shows_the_compilers_line(run: Runner) -> None:
    tools = 'class T(Tool):\n    events = {"count": ["value"]}\n    gpu = "LL_STORE(a) {\\n  nonsense(a);\\n}"\n    def count(self, b): pass\n'
    ran = run(PROGRAM, tools=tools)
    assert ran.code == 0
    assert "T.gpu:2" in ran.err and "nonsense" in ran.err


def test_a_forked_child_and_the_workers_of_a_loader_have_tables_of_their_own(run: Runner) -> None:
    program = """
    import os, torch
    from torch.utils.data import DataLoader, Dataset
    torch.ones(3) + 1
    pid = os.fork()
    if pid == 0:
        torch.ones(3) + 1
        torch.ones(3) + 1
        os._exit(0)
    os.waitpid(pid, 0)
    class Squares(Dataset):
        def __len__(self): return 12
        def __getitem__(self, at): return torch.full((4,), float(at)).square()
    for batch in DataLoader(Squares(), batch_size=3, num_workers=2):
        batch.sum()
    torch.ones(3) + 1
    """
    ran = run(program, tools=three_tools().split("class WorkingSet")[0])
    assert ran.code == 0, ran.err
    counts = []
    for result in tool_results(ran.profile, "KernelCount"):
        (table,) = result.found["outputs"]
        counts.append((result.process, {row[0]: row[1] for row in table["rows"]}))
    own, *children = counts
    assert own[1]["aten::add"] == 2 and own[1]["aten::sum"] == 4 and "aten::pow" not in own[1]
    forked = [found for process, found in children if found.get("aten::add")]
    assert [found["aten::add"] for found in forked] == [2]
    workers = [found for process, found in children if "aten::pow" in found]
    assert [found["aten::pow"] for found in workers] == [6, 6]
    assert [found["aten::stack"] for found in workers] == [2, 2]
    assert all("forked from" in process for process, _ in children)
    assert "does not look" not in ran.err


COMPACT = """
class KernelCount(Tool):                      # count kernels by name
    events = {"launch": ["kernel"]}
    def start(self): self.n = self.counter()
    def launch(self, b): self.n.add(b["kernel"])          # NumPy column, read-only
    def finish(self, out): out.table("kernels", self.n, sort="-count", show="stack of first")

class WorkingSet(Tool):
    events = {"touched": ["launch", "object", "pages"]}   # one row per (launch, object)
    page = option(bytes, "64KiB", "unit of the touched set")
    def start(self): self.w = self.sums("whole", "touched")
    def touched(self, b):
        self.w.add(b["launch"], whole=self.objects.bytes[b["object"]], touched=b["pages"] * self.page)
    def finish(self, out): out.distribution("working set", self.w, ["min", "mean", "median", "p90", "max"])
"""


def test_counting_kernels_is_eight_lines_and_a_working_set_twelve(run: Runner) -> None:
    kernels, _, sets = three_tools().split("class NaNs")[0].partition("class WorkingSet")
    assert len([line for line in kernels.splitlines() if line.strip()]) <= 8
    assert len([line for line in sets.splitlines() if line.strip()]) + 1 <= 12 - 1
    compact = run(PROGRAM, tools=COMPACT)
    assert compact.table("KernelCount")[0]["count"] > 10
    assert {row[""] for row in compact.table("WorkingSet")} == {"whole", "touched"}


def test_threads_and_views_and_a_compiled_function(run: Runner) -> None:
    program = """
    import threading, torch
    def work():
        for _ in range(10):
            torch.ones(4).view(2, 2).t() * 2
    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    """
    ran = run(program, tools=three_tools().split("class WorkingSet")[0])
    counts = {row["name"]: row["count"] for row in ran.table("KernelCount")}
    assert counts["aten::mul"] == 30
    assert "aten::view" not in counts


def test_sparse_gradients_are_looked_at(run: Runner) -> None:
    program = """
    import torch
    table = torch.nn.EmbeddingBag(1000, 16, mode="sum", sparse=True)
    for _ in range(2):
        table(torch.randint(0, 1000, (8, 4))).sum().backward()
        table.weight.grad = None
    """
    ran = run(program, "--tool", "working_set", "--tool", "value_check")
    assert ran.found("working_set")["lost"] == {}
    largest = ran.table("working_set", "largest launches")[0]
    assert largest["kernel"] == "aten::normal_" or largest["whole"] >= 1000 * 16 * 4
    assert ran.found("value_check")["outputs"][0]["text"].startswith("Every floating-point value")


def test_compiled_code_runs_as_it_would_and_its_operators_have_the_users_line(run: Runner) -> None:
    program = """
    import torch
    net = torch.nn.Linear(32, 8)
    compiled = torch.compile(net)
    x = torch.randn(4, 32)
    with torch.no_grad():
        y = compiled(x)
        assert torch.allclose(y, net(x), atol=1e-5)
    """
    ran = run(program, "--tool", "kernel_frequency")
    assert ran.code == 0, ran.err
    rows = {row["kernel"]: row for row in ran.table("kernel_frequency")}
    assert rows["aten::addmm"]["launches"] == 2
    assert rows["aten::addmm"]["first from"]["short"].startswith("program.py:7")


KEEPS = """
class Keeps(Tool):
    events = {"launch": ["kernel"]}
    most_bytes = 300_000
    def start(self): self.kept, self.seen = [], 0
    def launch(self, b):
        self.kept.append(b)
        self.seen += len(b)

class Good(Tool):
    events = {"launch": ["kernel"]}
    def start(self): self.n = self.counter()
    def launch(self, b): self.n.add(b["kernel"])
    def finish(self, out): out.table("kernels", self.n)
"""
LOOP = """
import time
import torch
x = torch.ones(8)
for i in range(6000):
    x.add(1)
    if i % 1000 == 0: time.sleep(0.3)  # a batch of its own
"""


@pytest.fixture(scope="module")
def looped(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """One run for the tools that end early, each of which leaves the others alone."""
    run = Runner(tmp_path_factory.mktemp("looped"))
    ran = run(LOOP, tools=KEEPS + FORKS)
    assert ran.code == 0, ran.err
    return ran


def test_a_tool_that_keeps_all_it_sees_is_ended_with_a_sentence(looped: Ran) -> None:
    ran = looped
    assert re.search(
        r"the tool Keeps was stopped: it held about \d+ KiB, more than the 293 KiB of its most_bytes", ran.err
    )
    assert {row["name"]: row["count"] for row in ran.table("Good")}["aten::add"] == 6000
    ended = [loss for loss in ran.profile.losses if loss.kind.name.lower() == "tool_ended"]
    assert [loss.count for loss in ended if "Keeps" in loss.detail] == [1]


FORKS = """
import os, subprocess
class Forks(Tool):
    events = {"launch": ["kernel"]}
    def launch(self, b):
        open("children", "a").write(f"{os.fork()}\\n")

class Starts(Tool):
    events = {"launch": ["kernel"]}
    def start(self): self.n = 0
    def launch(self, b): self.n += len(b); subprocess.run(["true"], check=True)
    def finish(self, out): out.text("launches", str(self.n))
"""


def test_a_tool_that_forks_is_ended_and_its_child_is_gone(looped: Ran) -> None:
    ran = looped
    assert "the tool Forks was stopped: it forked the process" in ran.err
    assert "start programs with subprocess" in ran.found("Forks")["problem"]
    children = [int(line) for line in (ran.folder / "children").read_text().splitlines() if line != "0"]
    assert len(children) == 1
    state = Path(f"/proc/{children[0]}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX"  # at most to be waited for
    assert len(ran.profile.processes) == 1  # and was not measured
    (told,) = [one["text"] for one in ran.found("Starts")["outputs"]]
    assert int(told) >= 6000
