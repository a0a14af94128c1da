"""Files that lie elsewhere: a store of fsspec's, and servers on the loopback address that know ranges or do not."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.distributed.simulated import SimulatedRank

from leadline.cli.main import main
from leadline.profiles import ProfileFileError, open_profile, write_profile
from leadline.profiles.builder import ProfileBuilder, synthetic_meta
from leadline.profiles.profile import Profile
from leadline.profiles.reader import open_head

fsspec = pytest.importorskip("fsspec")
RANKS = 4


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    (tmp_path / "ranks").mkdir()
    for rank in range(RANKS):
        write_profile(tmp_path / "ranks" / f"host_rank{rank}_1.leadline", SimulatedRank(rank).profile())
    return tmp_path / "ranks"


@pytest.fixture
def store(ranks: Path):
    memory = fsspec.filesystem("memory")
    for path in ranks.iterdir():
        memory.pipe(f"/job/{path.name}", path.read_bytes())
    memory.pipe("/job/notes.txt", b"no profile")
    yield "memory://job"
    memory.rm("/job", recursive=True)


@pytest.mark.parametrize("end", ["", "/", "/*.leadline", "/host_rank[0-3]_1.leadline"])
def test_a_store_gives_the_same_bytes_as_a_folder(ranks: Path, store: str, end: str, tmp_path: Path) -> None:
    assert main(["merge", str(ranks), "-o", str(tmp_path / "a.leadline")]) == 0
    assert main(["merge", store + end, "-o", str(tmp_path / "b.leadline")]) == 0
    assert (tmp_path / "a.leadline").read_bytes() == (tmp_path / "b.leadline").read_bytes()


def test_what_a_store_refuses_is_named_and_the_rest_is_merged(ranks: Path, store: str, tmp_path: Path, capsys) -> None:
    fsspec.filesystem("memory").pipe("/job/host_rank1_1.leadline", b"cut off")
    out = tmp_path / "b.leadline"
    assert main(["merge", store, "nowhere://bucket/x", "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert "memory://" in said.err + said.out and "nowhere://bucket/x" in said.err + said.out
    told = [loss.detail for loss in open_profile(out).losses]
    assert any("host_rank1_1" in one for one in told) and any("nowhere" in one for one in told)
    assert main(["merge", "memory://not-there", "-o", str(tmp_path / "c.leadline")]) == 2


def server(data: bytes, *, ranges: bool):
    """Serves one file; `sent` counts its bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            if ranges:
                self.send_header("Accept-Ranges", "bytes")
            self.end_headers()

        def do_GET(self) -> None:
            asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")) if ranges else None
            body = data
            if asked:
                begin, end = int(asked[1]), min(int(asked[2] or len(data) - 1), len(data) - 1)
                body = data[begin : end + 1]
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{end}/{len(data)}")
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            made.sent += len(body)

        def log_message(self, *_: object) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.sent = 0
    threading.Thread(target=made.serve_forever, daemon=True).start()
    return made


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    """More than 4 MiB packed, so that it is not fetched as a whole."""
    import numpy as np

    builder = ProfileBuilder()
    process = builder.process("train.py", rank=0)
    thread = builder.thread(process, "main")
    noise = np.random.default_rng(1).bytes(6 << 20).hex()
    node = builder.child(builder.node_of_thread(thread), builder.frame("region", noise))
    builder.add(node, "time", 5)
    path = tmp_path_factory.mktemp("large") / "large.leadline"
    write_profile(path, Profile(builder.tables(), synthetic_meta()))
    assert path.stat().st_size > 5 << 20
    return path


@pytest.mark.parametrize("ranges", [True, False])
def test_a_web_server(large: Path, ranges: bool) -> None:
    pytest.importorskip("aiohttp")
    there = server(large.read_bytes(), ranges=ranges)
    address = f"http://127.0.0.1:{there.server_address[1]}/large.leadline"
    try:
        _, processes = open_head(address)
        assert processes["rank"].tolist() == [0]
        if ranges:
            assert there.sent < 0.1 * large.stat().st_size
        assert open_profile(address).tree.root.inclusive("time").sum == 5
    finally:
        there.shutdown()
        there.server_close()


def test_nobody_there_is_one_sentence() -> None:
    pytest.importorskip("aiohttp")
    with pytest.raises(ProfileFileError) as raised:
        open_head("http://127.0.0.1:9/x.leadline")
    assert str(raised.value).startswith("http://127.0.0.1:9/x.leadline cannot be read: ")
