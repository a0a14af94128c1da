"""Windows that are asked for while the loop runs."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.distributed.launch import forked
from tests.training.loops import finished

import leadline
from leadline.capture.training.config import TrainingConfig
from leadline.capture.training.on_demand import AHEAD, REQUEST, Demand, FileListener, HttpListener, SignalListener
from leadline.capture.training.on_store import StoreListener
from leadline.training import build_profiler


def running(folder: Path, kind: str):
    profiler = build_profiler(
        enable=True, trace_dir=str(folder), start_step=0, end_step=1, on_demand=kind, on_demand_steps=2, rank=0
    )
    profiler.start(0)
    return profiler


def test_a_signal_opens_a_window_from_the_next_step_on_and_the_handler_before_comes_back(tmp_path: Path) -> None:
    heard = []
    before = signal.signal(signal.SIGUSR2, lambda *_: heard.append(1))
    try:
        profiler = running(tmp_path, "signal")
        for step in range(10):
            if step == 4:
                os.kill(os.getpid(), signal.SIGUSR2)
            profiler.step(step)
        assert finished(profiler).window.steps == (0, 5, 6)
        os.kill(os.getpid(), signal.SIGUSR2)
        assert heard == [1, 1]
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_a_file_opens_a_window(tmp_path: Path) -> None:
    profiler = running(tmp_path, "file")
    for step in range(20):
        if step == 4:
            (tmp_path / REQUEST).write_text("")
        profiler.step(step)
    first = 4 + 1 + AHEAD
    assert finished(profiler).window.steps == (0, first, first + 1)
    assert not (tmp_path / REQUEST).exists()


def test_ranks_that_see_a_file_at_different_steps_record_the_same(tmp_path: Path) -> None:
    demands = [Demand(), Demand()]
    ranks = [FileListener(demand, tmp_path, 3) for demand in demands]
    (tmp_path / REQUEST).write_text(json.dumps({"steps": 2}))
    for ended in range(12):
        ranks[0].poll(ended)
        if ended >= 2:
            ranks[1].poll(ended - 2)
    assert [[step for step in range(12) if demand.covers(step)] for demand in demands] == [[6, 7], [6, 7]]


@pytest.mark.parametrize("apart", [AHEAD + 1, 3 * AHEAD, 10 * AHEAD])
def test_a_window_that_one_rank_has_passed_is_put_where_all_ranks_have_it_ahead(tmp_path: Path, apart: int) -> None:
    demands = [Demand(), Demand(), Demand()]
    ranks = [FileListener(demand, tmp_path, 2) for demand in demands]
    covered: list[list[int]] = [[], [], []]
    (tmp_path / REQUEST).write_text("")
    for turn in range(200):
        for rank, listener in enumerate(ranks):  # the slowest sees the request first
            listener.poll(turn + rank * apart)
            covered[rank] += [turn + rank * apart + 1] if demands[rank].covers(turn + rank * apart + 1) else []
    assert covered[0] and covered[0][-2:] == covered[1][-2:] == covered[2][-2:]


class FakeStore:
    """One key after the other, as torch's store answers."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def set(self, key: str, value: str) -> None:
        self.held[key] = value.encode()

    def check(self, keys: list[str]) -> bool:
        return all(key in self.held for key in keys)

    def get(self, key: str) -> bytes:
        return self.held[key]


def test_the_store_puts_a_passed_window_further_ahead() -> None:
    store = FakeStore()
    demands = [Demand(), Demand()]
    ranks = [StoreListener(demand, 2, store) for demand in demands]
    ranks[0].ask(2)
    seen: list[set[int]] = [set(), set()]
    for ended in range(80):
        for rank, at in ((0, ended), (1, ended + 4 * AHEAD)):
            ranks[rank].poll(at)
            seen[rank] |= {at + 1} if demands[rank].covers(at + 1) else set()
    for one in ranks:
        one.close()
    assert len(seen[1]) == 2 and seen[1] <= seen[0]


@pytest.mark.parametrize("text", ["{", "[]", '{"steps": -1}', '{"first": "x"}', "\0"])
def test_a_request_that_makes_no_sense_is_one_for_the_usual_window(tmp_path: Path, text: str) -> None:
    demand = Demand()
    listener = FileListener(demand, tmp_path, 3)
    (tmp_path / REQUEST).write_text(text)
    for ended in range(3):
        listener.poll(ended)
    assert [step for step in range(20) if demand.covers(step)] == [6, 7, 8]


def test_a_window_that_has_passed_is_said(tmp_path: Path, capfd) -> None:
    demand = Demand()
    listener = FileListener(demand, tmp_path, 3)
    (tmp_path / REQUEST).write_text('{"first": 2}')
    listener.poll(10)
    assert "has passed on this rank" in capfd.readouterr().err
    assert not demand.covers(11)


def test_a_request_to_the_loopback_address_needs_the_token(tmp_path: Path) -> None:
    demand = Demand()
    listener = HttpListener(demand, tmp_path, 0, 3)
    try:
        (port_file,) = tmp_path.glob("*.port")
        assert port_file.stat().st_mode & 0o077 == 0
        port, token = port_file.read_text().split()

        def post(path: str, key: str) -> int:
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method="POST")
            request.add_header("X-Leadline-Token", key)
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            try:
                return opener.open(request, timeout=30).status
            except urllib.error.HTTPError as error:
                return error.code

        assert post("/window?steps=2", "wrong") == 403
        demand.settle(3)
        assert not demand.covers(4)
        assert post("/nothing", token) == 404
        assert post("/window?steps=many", token) == 400
        assert post("/window?steps=2", token) == 200
        listener.poll(3)
        assert [step for step in range(9) if demand.covers(step)] == [4, 5]
        assert post("/window?all=1", token) == 200
        assert (tmp_path / REQUEST).exists()
    finally:
        listener.close()
    assert not list(tmp_path.glob("*.port"))


def test_the_program_asks_itself(tmp_path: Path) -> None:
    profiler = build_profiler(TrainingConfig(enable=True, trace_dir=str(tmp_path), start_step=0, end_step=1), rank=0)
    profiler.start(0)
    for step in range(8):
        if step == 3:
            profiler.request_window(2, first=5)
        profiler.step(step)
    assert finished(profiler).window.steps == (0, 5, 6)
    assert leadline.open(str(profiler.path)).window.steps == (0, 5, 6)


@pytest.mark.parametrize("written", [b"\xff\xfe{", b"[" * 100_000, b"nonsense"], ids=["bytes", "deep", "words"])
def test_a_request_that_is_none_leaves_the_loop_alone(tmp_path: Path, written: bytes) -> None:
    profiler = running(tmp_path, "file")
    for step in range(4):
        if step == 1:
            (tmp_path / REQUEST).write_bytes(written)
        profiler.step(step)
    assert 0 in finished(profiler).window.steps


def test_a_forked_child_that_stops_leaves_the_profile_to_its_parent(tmp_path: Path) -> None:
    profiler = running(tmp_path, "http")
    profiler.step(0)
    child = os.fork()
    if child == 0:
        profiler.stop()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    profiler.step(1)
    assert finished(profiler).window.steps == (0,)


def test_a_world_size_that_is_no_number_is_one_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "auto")
    profiler = running(tmp_path, "file")
    profiler.step(0)
    assert finished(profiler).window.steps == (0,)


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN])
def test_what_a_signal_did_before_it_does_afterwards(tmp_path: Path, before) -> None:
    kept = signal.signal(signal.SIGUSR2, before)
    try:
        profiler = running(tmp_path, "signal")
        assert signal.getsignal(signal.SIGUSR2) not in (signal.SIG_DFL, signal.SIG_IGN)
        profiler.stop()
        assert signal.getsignal(signal.SIGUSR2) == before
    finally:
        signal.signal(signal.SIGUSR2, kept)


def test_a_handler_that_is_not_pythons_stays(monkeypatch) -> None:
    kept = signal.getsignal(signal.SIGUSR2)
    monkeypatch.setattr(signal, "getsignal", lambda number: None)  # as for a handler that a C library has set
    with pytest.raises(ValueError, match="a library handles SIGUSR2"):
        SignalListener(Demand(), 3)
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGUSR2) == kept


def test_torchs_store_opens_the_same_steps_on_every_rank(capsys) -> None:
    distributed = pytest.importorskip("torch.distributed", reason="its store is used")
    first = distributed.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)
    second = distributed.TCPStore("127.0.0.1", first.port, 2, False, wait_for_workers=False)
    demands = [Demand(), Demand()]
    ranks = [StoreListener(demand, 3, store) for demand, store in zip(demands, (first, second), strict=True)]
    recorded: list[list[int]] = [[], []]
    for ended in range(-1, 20):
        if ended == 3:
            ranks[1].ask(2)
        for rank in (0, 1):
            at = ended - rank  # the second rank is a step behind
            if at >= 0:
                ranks[rank].poll(at)
                recorded[rank] += [at + 1] if demands[rank].covers(at + 1) else []
    start = 2 + 1 + AHEAD
    assert recorded == [[start, start + 1], [start, start + 1]]
    ranks[0].ask(1, first=4)
    ranks[0].poll(30)
    assert "the window asked for at step 4 has passed" in capsys.readouterr().err
    for listener in reversed(ranks):
        listener.close()


class DeadStore:
    def check(self, keys) -> bool:
        raise RuntimeError("Connection reset by peer")


def test_a_store_that_is_gone_is_a_sentence_and_is_asked_no_more(capsys) -> None:
    demand = Demand()
    listener = StoreListener(demand, 3, DeadStore())
    for step in range(3):
        listener.poll(step)
    assert capsys.readouterr().err.count("torch's store does not answer") == 1
    assert demand.now == 2
    listener.close()


RANKS = """
import os, signal, sys, torch.distributed as dist, leadline
dist.init_process_group("gloo")
profiler = leadline.build_profiler(
    enable=True, start_step=0, end_step=1, trace_dir=sys.argv[1], on_demand="store", on_demand_steps=2
)
profiler.start(0)
for step in range(24):
    if step == 3 and dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGUSR2)
    if step == 14 and dist.get_rank() == 0:
        profiler.request_window(1, all_ranks=True)
    dist.barrier()
    profiler.step(step)
profiler.stop()
dist.destroy_process_group()
"""


def test_a_signal_to_one_of_two_real_ranks_opens_both(tmp_path: Path) -> None:
    pytest.importorskip("torch.distributed", reason="its ranks are real")
    (tmp_path / "loop.py").write_text(RANKS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    done = subprocess.run(
        forked(2, tmp_path / "loop.py", tmp_path / "out"),
        capture_output=True, text=True, env=environment, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    windows = [leadline.open(str(path)).window.steps for path in (tmp_path / "out").glob("*_rank*.leadline")]
    assert windows == [(0, 3 + 1 + AHEAD, 3 + 2 + AHEAD, 14 + 1 + AHEAD)] * 2


def test_all_ranks_need_a_way_to_all_of_them(tmp_path: Path, capsys) -> None:
    profiler = running(tmp_path, "signal")
    profiler.request_window(all_ranks=True)
    profiler.stop()
    assert 'need on_demand = "store"' in capsys.readouterr().err
