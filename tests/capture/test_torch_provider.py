"""torch under Leadline, from the outside: it is attached when the program imports it, and the program notices nothing."""

import json
import textwrap
import zipfile

import pytest
from tests.losses import lost

import leadline

pytest.importorskip("torch", reason="torch is not installed, and these tests run real programs with it")

TRAIN = """
    import torch
    from torch import nn
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
            self.head = nn.Linear(8, 2)
        def forward(self, x):
            return self.head(self.body(x))
    def train(steps, data):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step, x in zip(range(steps), data):
            loss = model(x).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model
"""


def run(place, program: str, *options: str):
    place.write("script.py", textwrap.dedent(TRAIN) + textwrap.dedent(program))
    result = place.leadline("run", "-q", *options, "script.py")
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr == b""
    return leadline.open(str(place.folder / "script.leadline"))


def meta(place) -> dict[str, object]:
    with zipfile.ZipFile(place.folder / "script.leadline") as package:
        return json.loads(package.read("meta.json"))


def count(profile, kind: str, name: str) -> int:
    return sum(node.exclusive("call_time").count for node in profile.tree.find(kind=kind, name=name))


def test_operators_modules_and_phases(place) -> None:
    """And a global model, which has the name of its variable."""
    profile = run(place, "train(5, [torch.ones(4, 8)] * 5)\ngpt = Net().to('cpu').eval()\ngpt(torch.ones(1, 8))")
    assert count(profile, "operator", "aten::linear") == 10 + 2
    assert {node.name for node in profile.tree.find(kind="module")} >= {"model", "model.body.0", "model.head"}
    assert {node.name for node in profile.tree.find(kind="module")} >= {"gpt", "gpt.body", "gpt.head"}
    assert {node.name for node in profile.tree.find(kind="phase")} >= {"forward", "backward", "optimizer", "zero_grad"}
    assert meta(place)["available"]["torch"]["ok"] is True
    assert lost(profile) == []


def test_torch_imported_in_a_thread_and_in_a_function(place) -> None:
    place.write(
        "script.py",
        """
        import threading
        def work():
            import torch
            torch.ones(3).add(1)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
    )
    assert place.leadline("run", "-q", "script.py").returncode == 0
    profile = leadline.open(str(place.folder / "script.leadline"))
    assert count(profile, "operator", "aten::add") == 1


def test_data_loader_workers_are_followed(place) -> None:
    profile = run(
        place,
        """
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 12
            def __getitem__(self, index):
                return torch.full((8,), float(index)).mul(2)
        if __name__ == "__main__":
            train(6, torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2))
        """,
    )
    processes = profile.table("processes")
    assert len(processes["pid"]) == 3
    assert processes["complete"].tolist() == [1, 1, 1]
    assert count(profile, "operator", "aten::full") == 12
    assert "data loading" in {node.name for node in profile.tree.find(kind="phase")}
    assert lost(profile) == []


def test_loader_workers_are_in_the_trace_window(place) -> None:
    """Workers end no steps; they keep what they do while the training process's window is open, batch by batch."""
    profile = run(
        place,
        """
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 400
            def __getitem__(self, index):
                return torch.full((8,), float(index)).mul(2)
        if __name__ == "__main__":
            train(60, torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2))
        """,
        "--trace",
        "steps=40,wait=5",
    )
    events = profile.table("events")
    process = [profile.threads[thread].process if thread >= 0 else -1 for thread in events["thread"].tolist()]
    main = next(item.row for item in profile.processes if item.parent_pid not in {p.pid for p in profile.processes})
    names = [name(profile, events, row) for row in range(len(process))]
    workers = {where for where in process if where not in (-1, main)}
    assert len(workers) == 2
    batches = [row for row, where in enumerate(process) if where in workers and names[row] == "data loading"]
    samples = [row for row, where in enumerate(process) if where in workers and names[row] == "aten::full"]
    # what a worker had fetched ahead when the window opened was made before it
    assert 25 <= len(batches) <= 45
    assert abs(len(samples) - 2 * len(batches)) <= 4
    steps = [row for row, text in enumerate(names) if text == "step"]
    begin = min(events["start_ns"][steps])
    assert all(events["start_ns"][row] + events["duration_ns"][row] >= begin for row in batches)
    assert lost(profile) == []


def test_trace_windows_by_optimizer_steps(place) -> None:
    profile = run(place, "train(6, [torch.ones(4, 8)] * 6)", "--trace", "steps=2,wait=2")
    events = profile.table("events")
    linears = [row for row in range(len(events["node"])) if name(profile, events, row) == "aten::linear"]
    assert len(linears) == 4
    steps = [
        row
        for row in range(len(events["node"]))
        if profile.tree.node(int(events["node"][row])).kind == "phase" and name(profile, events, row) == "step"
    ]
    assert events["step"][steps].tolist() == [2, 3]
    assert (events["duration_ns"] >= 0).all()


def name(profile, events, row: int) -> str:
    return profile.tree.node(int(events["node"][row])).name


def test_the_programs_own_view_of_torch_is_unchanged(place) -> None:
    program = """
        import torch
        print(type(torch.__spec__), sorted(vars(torch.__spec__)), type(torch.__loader__), vars(torch.__loader__))
        print(torch.get_num_threads(), torch.rand(2, generator=torch.manual_seed(0)))
        print(torch.is_grad_enabled(), torch.autograd.profiler._is_profiler_enabled)
        """
    place.write("script.py", program)
    plain = place.python("script.py")
    assert place.leadline("run", "-q", "script.py").stdout == plain.stdout


def test_torchrun_ranks_end_in_one_file(place) -> None:
    place.write(
        "child.py",
        """
        import torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        x = torch.ones(4)
        dist.all_reduce(x)
        assert x[0] == 2
        dist.destroy_process_group()
        """,
    )
    import sys

    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "child.py"]
    result = place.leadline("run", "-q", "-o", "ranks.leadline", "--", *command)
    assert result.returncode == 0, result.stderr.decode()
    processes = leadline.open(str(place.folder / "ranks.leadline")).table("processes")
    assert sorted(zip(processes["rank"].tolist(), processes["local_rank"].tolist(), strict=True)) == [
        (-1, -1),
        (0, 0),
        (1, 1),
    ]


FAKE_TORCH = "__version__ = {version!r}\n"


@pytest.mark.parametrize(
    ("version", "sentence"),
    [("2.3.1", "older than 2.4"), ("1.13.0+cu117", "older than 2.4"), ("9.9", "could not be attached")],
)
def test_a_torch_that_cannot_be_measured_costs_only_itself(place, version: str, sentence: str) -> None:
    place.write("torch/__init__.py", FAKE_TORCH.format(version=version))
    place.write("script.py", "import torch, leadline\nwith leadline.region('a'): print(torch.__version__)")
    result = place.leadline("run", "-q", "script.py")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{version}\n".encode(), b"")
    profile = leadline.open(str(place.folder / "script.leadline"))
    assert [node.name for node in profile.tree.find(kind="region")] == ["a"]
    status = meta(place)["available"]["torch"]
    assert status["ok"] is False
    assert sentence in status["message"]
    assert [(loss.kind.name, loss.detail) for loss in profile.losses] == [("PROVIDER_UNAVAILABLE", status["message"])]


def test_a_torch_whose_import_fails(place) -> None:
    place.write("torch/__init__.py", "raise ImportError('libcudart.so.12: cannot open shared object file')")
    place.write("script.py", "import torch")
    plain = place.python("script.py")
    result = place.leadline("run", "-q", "script.py")
    assert (result.returncode, result.stderr) == (1, plain.stderr)


def test_no_torch_at_all(place) -> None:
    place.write("script.py", "import leadline\nwith leadline.region('a'): pass")
    assert place.leadline("run", "-q", "script.py").returncode == 0
    assert meta(place)["available"]["torch"] == {
        "ok": None,
        "version": "",
        "message": "The program did not import torch.",
    }


def test_nothing_of_us_is_left_after_stop(place) -> None:
    place.write(
        "script.py",
        TRAIN
        + """
    import leadline, os
    registry = nn.modules.module
    def state():
        hooks = [dict(value) for name, value in sorted(vars(registry).items()) if name.endswith("_hooks")]
        return hooks, nn.Module.__setstate__, dict(os.environ), os._exit
    train(1, [torch.ones(4, 8)])
    threads = set(os.listdir("/proc/self/task"))
    before = state()
    for round in range(2):
        with leadline.profile("out.leadline"):
            train(3, [torch.ones(4, 8)] * 3)
        assert state() == before
    while set(os.listdir("/proc/self/task")) - threads: pass  # one that was joined is listed for a moment longer
    profile = leadline.open("out.leadline")
    operators = profile.tree.find(kind="operator", name="aten::linear")
    assert sum(node.exclusive("call_time").count for node in operators) == 6
    assert {node.name for node in profile.tree.find(kind="module")} >= {"model", "model.head"}
    """,
    )
    result = place.python("script.py")
    assert (result.returncode, result.stderr) == (0, b"")
