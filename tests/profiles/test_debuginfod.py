"""Debug information from servers: elfutils' own `debuginfod` on loopback, and servers that answer badly."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.cli.main import main
from leadline.profiles import open_profile, write_profile
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.debuginfod import DebugServers, servers_of
from leadline.profiles.elf import ElfFile
from leadline.profiles.symbols import Symbolized, symbolized

SOURCE = """
static __attribute__((noinline)) int hidden(int n) { return n * 3; }
int shown(int n) { return hidden(n) + 1; }
"""

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cc", "nm", "objcopy"))), reason="no compiler or no binutils are installed"
)


class Stripped:
    """A library without its local names and lines; `debug` holds them."""

    def __init__(self, folder: Path) -> None:
        self.path, self.debug = folder / "libshop.so", folder / "server" / "libshop.debug"
        self.debug.parent.mkdir()
        (folder / "shop.c").write_text(SOURCE)
        command = ["cc", "-g", "-O2", "-fno-inline", "-shared", "-fPIC", "-Wl,--build-id", "shop.c", "-o", "libshop.so"]
        subprocess.run(command, cwd=folder, check=True)
        said = subprocess.run(["nm", self.path], capture_output=True, text=True, check=True).stdout
        rows = [line.split() for line in said.splitlines()]
        self.hidden = next(int(row[0], 16) for row in rows if len(row) == 3 and row[2] == "hidden")
        subprocess.run(["objcopy", "--only-keep-debug", self.path, self.debug], check=True)
        subprocess.run(["strip", self.path], check=True)
        self.build_id = ElfFile(self.path).build_id

    def symbolized(self, servers: DebugServers | None) -> Symbolized:
        """One sample in the function that only `debug` names."""
        builder = ProfileBuilder()
        thread = builder.node_of_thread(builder.thread(builder.process("program"), "main"))
        name = f"libshop.so+{self.hidden:#x}"
        frame = builder.frame("native", name, file=str(self.path), module=self.build_id, address=self.hidden)
        builder.add(builder.child(thread, frame), "cpu_sample", 1_000_000)
        return symbolized(builder.profile(), servers=servers)


@pytest.fixture
def library(tmp_path: Path) -> Stripped:
    return Stripped(tmp_path)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def names(done: Symbolized) -> list[str]:
    return [node.name for node in done.profile.tree.walk() if node.kind == "native"]


@pytest.fixture
def real_server(library: Stripped, tmp_path: Path) -> Iterator[str]:
    """elfutils' server over the folder with the debug information."""
    if shutil.which("debuginfod") is None:
        pytest.skip("debuginfod is not installed")
    url = f"http://127.0.0.1:{free_port()}"
    command = ["debuginfod", "-d", ":memory:", "-p", url.rsplit(":", 1)[1], "-F", "-t", "1", str(library.debug.parent)]
    home = {**os.environ, "HOME": str(tmp_path)}
    with subprocess.Popen(command, env=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                try:
                    urllib.request.urlopen(f"{url}/buildid/{library.build_id}/debuginfo", timeout=10).close()
                    break
                except (urllib.error.URLError, OSError):
                    assert server.poll() is None, "the server ended"
                    time.sleep(0.1)
            yield url
        finally:
            server.terminate()


def test_a_stripped_library_has_the_names_and_lines_that_the_server_has(
    real_server: str, library: Stripped, tmp_path: Path
) -> None:
    assert library.symbolized(None).unnamed == 1
    said: list[str] = []
    done = library.symbolized(DebugServers([real_server], tmp_path / "cache", said.append))
    assert (done.named, done.sentences, names(done)) == (1, (), ["hidden"])
    (node,) = (node for node in done.profile.tree.walk() if node.kind == "native")
    if "source" in node.detail:  # with the extra `lines`
        assert str(node.detail["source"]).endswith("shop.c") and node.detail["line"] == 2
    assert len(said) == 1 and real_server in said[0] and "MB" in said[0]
    # What was fetched is not asked for again, not even where nobody answers.
    again = library.symbolized(DebugServers([f"http://127.0.0.1:{free_port()}"], tmp_path / "cache"))
    assert names(again) == ["hidden"] and not again.sentences


def test_a_library_that_is_gone_is_named_by_the_server(real_server: str, library: Stripped, tmp_path: Path) -> None:
    library.path.unlink()
    assert "no longer exists" in library.symbolized(None).sentences[0]
    done = library.symbolized(DebugServers([real_server], tmp_path / "cache"))
    assert (names(done), done.sentences) == (["hidden"], ())


def test_the_command_asks_only_where_it_is_told_to(
    real_server: str,
    library: Stripped,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "run.leadline"
    write_profile(file, library.symbolized(None).profile)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    assert main(["symbolize", str(file), "--debuginfod"]) == 2
    assert "set DEBUGINFOD_URLS" in capsys.readouterr().err
    monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:{free_port()} {real_server}/")
    assert main(["symbolize", str(file)]) == 0
    assert not (tmp_path / "cache").exists() and "stay addresses" in capsys.readouterr().err
    assert main(["symbolize", str(file), "--debuginfod"]) == 0
    said = capsys.readouterr().err
    assert "was not asked again" in said and "named 1 native frame" in said
    assert "hidden" in {node.name for node in open_profile(str(file)).tree.walk()}


class BadServer(http.server.BaseHTTPRequestHandler):
    """What the server answers by the path of `how`: `torn`, `error`, `other` (another file's information)."""

    other = b""
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        how = self.path.split("/")[1]
        if how == "error":
            self.send_error(500)
            return
        body = b"\x7fELF" if how == "torn" else self.other
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (100 if how == "torn" else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.mark.parametrize(
    ("how", "sentence"), [("torn", "ended early"), ("error", "Internal Server Error"), ("other", None)]
)
def test_servers_that_answer_badly_are_named_once_and_nothing_of_theirs_is_taken(
    how: str, sentence: str | None, library: Stripped, tmp_path: Path
) -> None:
    BadServer.asked, BadServer.other = 0, Path("/proc/self/exe").read_bytes()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), BadServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers = DebugServers([f"http://127.0.0.1:{server.server_port}/{how}"], tmp_path / "cache")
        done = library.symbolized(servers)
        assert names(done) == [f"libshop.so+{library.hidden:#x}"]
        if sentence:
            assert len(done.sentences) == 1 and sentence in done.sentences[0]
            assert not list((tmp_path / "cache").rglob("*info*"))
        library.symbolized(servers)
        assert BadServer.asked == 1
        server.shutdown()


@pytest.mark.parametrize("url", ["file:///etc", "ftp://127.0.0.1", "nonsense", "http://[::1", "http://127.0.0.1:1"])
def test_addresses_that_are_no_servers_are_one_sentence(url: str, library: Stripped, tmp_path: Path) -> None:
    done = library.symbolized(DebugServers([url], tmp_path / "cache"))
    assert len(done.sentences) == 1 and url in done.sentences[0]


@pytest.mark.parametrize("build_id", ["", "../../etc", "ABCD", "12"])
def test_a_build_id_that_is_none_is_not_asked_for(build_id: str, tmp_path: Path) -> None:
    servers = DebugServers(["nonsense"], tmp_path)
    assert servers.file(build_id, "debuginfo") is None and servers.sentences == []


def test_where_fetched_files_lie() -> None:
    assert servers_of({}) is None
    assert servers_of({"DEBUGINFOD_URLS": " "}) is None
    found = servers_of({"DEBUGINFOD_URLS": "https://a.example https://b.example/", "HOME": "/home/me"})
    assert found is not None and found._cache == Path("/home/me/.cache/debuginfod_client")
