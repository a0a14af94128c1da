"""Pages that operators really touch, against NumPy's count; and programs that go on as they would without."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.eventtools.conftest import Ran, Runner, rows_of

from leadline.report.tools import tool_results

pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")

TOOLS = """
class Rows(Tool):
    page = option(bytes, "4KiB", "")
    events = {"launch": ["kernel"], "touched": ["launch", "object", "bytes", "pages", "reads", "writes"]}
    def start(self): self.kept = []
    def launch(self, b): pass
    def touched(self, b):
        for row in range(len(b)):
            one = {name: int(b[name][row]) for name in b.columns() if "@" not in name}
            one["kernel"] = self.names[int(self.launches.kernel[one["launch"]])].removeprefix("aten::")
            one["size"] = int(self.objects.bytes[one["object"]])
            one["line"] = self.places.line(one["place"])
            self.kept.append(one)
    def finish(self, out): out.table("rows", self.kept)
"""
PROGRAM = """
import numpy as np
import torch
torch.manual_seed(0)
table = torch.randn(50_000, 64)
index = torch.randint(0, 50_000, (700,))
a, b = torch.randn(600, 600), torch.randn(600, 600)
first = table.data_ptr()
with torch.no_grad():
    gathered = table[index]  # line of gather
    part = table[1000:3000].sum()  # line of part
    product = a @ b  # line of product
    a.add_(1.0)  # line of add
    b.zero_()  # line of zero
    a[100:200].mul_(2)  # line of some
    parted = torch.where(a > 100, a, a)  # several operators
np.testing.assert_array_equal(gathered.numpy(), table.numpy()[index.numpy()])
begins = first + index.numpy() * 256
print("PAGES", len(np.unique(np.concatenate([begins // 4096, (begins + 255) // 4096]))))
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Runner(tmp_path_factory.mktemp("pages"))(PROGRAM, "--backend", "pages", tools=TOOLS)


def at(ran: Ran, what: str, size: int) -> list[dict[str, int]]:
    line = next(i for i, text in enumerate(PROGRAM.splitlines(), 1) if f"# line of {what}" in text)
    return [row for row in ran.table("Rows") if row["line"] == f"program.py:{line}" and row["size"] == size]


def test_a_gather_has_the_pages_that_it_reads(ran: Ran) -> None:
    assert ran.code == 0, ran.err
    (row,) = at(ran, "gather", 4 * 50_000 * 64)
    pages = int(ran.out.split("PAGES")[1].split()[0])
    # The first and the last page are shared with other memory: never closed, so they count as touched.
    assert pages <= row["pages"] <= pages + 2
    assert row["writes"] == 0
    assert row["bytes"] <= row["pages"] * 4096


def test_a_slice_is_watched_by_itself(ran: Ran) -> None:
    (row,) = at(ran, "part", 4 * 50_000 * 64)
    assert row["bytes"] == 2000 * 64 * 4
    assert row["reads"] == 2000 * 64


def test_operands_of_a_product_are_read_whole(ran: Ran) -> None:
    rows = at(ran, "product", 4 * 600 * 600)
    assert sorted((row["reads"], row["writes"]) for row in rows) == [(0, 360_000), (360_000, 0), (360_000, 0)]


def test_reading_and_writing_are_told_apart(ran: Ran) -> None:
    (added,) = at(ran, "add", 4 * 600 * 600)
    assert added["bytes"] == added["writes"] * 4 == added["reads"] * 4 == 1_440_000
    (zeroed,) = at(ran, "zero", 4 * 600 * 600)
    assert (zeroed["reads"], zeroed["writes"]) == (0, 360_000)
    (some,) = at(ran, "some", 4 * 600 * 600)
    assert some["bytes"] == some["writes"] * 4 == 100 * 600 * 4


def test_nothing_is_lost_there(ran: Ran) -> None:
    assert ran.found("Rows")["lost"] == {}


TRAINING = """
import torch
torch.manual_seed(0)
torch.set_num_threads(2)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.BatchNorm2d(16), torch.nn.Flatten(), torch.nn.Linear(16 * 30 * 30, 20)
)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 3, 32, 32)), torch.randint(0, 20, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("LOSS", loss.item().hex())
"""


def test_training_gives_the_same_numbers(run: Runner) -> None:
    plain = run(TRAINING)
    watched = run(TRAINING, "--tool", "working_set", "--tool-option", "working_set.page=64KiB", "--backend", "pages")
    assert watched.code == 0, watched.err
    losses = [line for line in plain.out.splitlines() if line.startswith("LOSS")]
    assert losses == [line for line in watched.out.splitlines() if line.startswith("LOSS")]
    assert len(losses) == 3
    assert watched.found("working_set")["lost"] == {}


SYSTEM_CALLS = """
import faulthandler, io, os, tempfile, threading
import torch
import torch.distributed as dist
faulthandler.enable()  # a handler above ours
x = torch.ones(1 << 18)
for _ in range(20):
    y = x * 2
torch.save(x, io.BytesIO())
with tempfile.TemporaryFile() as file:
    x.numpy().tofile(file)
out = torch.empty(1 << 18)
torch.add(x, 1, out=out)
dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
dist.all_reduce(x)
with tempfile.NamedTemporaryFile() as file:
    file.write(bytes(1 << 20))
    file.flush()
    mapped = torch.from_file(file.name, shared=True, size=1 << 18, dtype=torch.float32)
    mapped.add_(3.0)
    assert open(file.name, "rb").read(4) == mapped[:1].numpy().tobytes()

class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return torch.full((1 << 16,), float(i)).mul_(2)

for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
    assert batch.sum() > -1

def beside():  # reads what others' operators have closed
    for _ in range(200):
        assert float(y.sum()) == 2.0 * (1 << 18)

threads = [threading.Thread(target=beside) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("DONE")
"""


def test_programs_that_hand_tensors_to_the_system_go_on(run: Runner) -> None:
    ran = run(SYSTEM_CALLS, "--backend", "pages", tools=TOOLS)
    assert ran.code == 0, ran.err
    assert "DONE" in ran.out
    found = {result.process.partition("forked")[1]: result.found for result in tool_results(ran.profile, "Rows")}
    assert set(found) == {"", "forked"}  # the loader's worker has a table of its own
    lost = " ".join(found[""]["lost"])
    assert "an out= argument may be given other memory" in lost
    assert "it is not one of torch's own" in lost
    assert any(row["kernel"] == "mul" and row["reads"] == 1 << 18 for row in rows_of(found[""]))


def test_tensors_without_a_storage_are_left_alone_and_counted(run: Runner) -> None:
    program = """
    import torch
    opaque = torch.randn(4, 3, 64, 64).to_mkldnn()
    print(bool((torch.relu(opaque).to_dense() >= 0).all()))
    """
    ran = run(program, "--backend", "pages", tools=TOOLS)
    assert (ran.code, ran.out) == (0, "True\n"), ran.err
    assert any("could not be inspected (NotImplementedError)" in lost for lost in ran.found("Rows")["lost"])


def test_a_program_that_crashes_says_so_as_it_would(run: Runner) -> None:
    program = """
    import ctypes, faulthandler
    import torch
    faulthandler.enable()
    x = torch.ones(1 << 18) * 2
    ctypes.string_at(8)
    """
    ran = run(program, "--backend", "pages", tools=TOOLS)
    assert ran.code in (-11, 139)
    assert "Segmentation fault" in ran.err


def test_launches_that_are_not_chosen_are_not_watched(run: Runner) -> None:
    ran = run(PROGRAM, "--backend", "pages", "--kernel", "^aten::index$", tools=TOOLS)
    assert ran.code == 0, ran.err
    assert {row["kernel"] for row in ran.table("Rows")} == {"index"}
    (row,) = at(ran, "gather", 4 * 50_000 * 64)
    assert row["pages"] < 2000


def test_the_two_that_tell_each_operator_do_not_go_together(run: Runner, tmp_path: Path) -> None:
    ran = run("print(1)", "--backend", "declared+pages", tools=TOOLS)
    assert ran.code == 2
    assert "name one of them" in ran.err
