"""The server of `leadline view`: what it hands out, and to whom."""

from __future__ import annotations

import http.client
import io
import json
import subprocess
import sys
import threading
from urllib.parse import quote, urlsplit

import pytest

from leadline._view_server import Opening, ViewServer
from leadline.cli.files import open_profile as cli_open
from leadline.profiles import open_profile
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile
from leadline.report.view import View


@pytest.fixture
def served(tmp_path):
    source = tmp_path / "train.py"
    source.write_text("import torch\nwork()\n")
    profile = build(f"python main @ {source}:2\n  operator aten::mm | time=5 call_time=5")
    profile.meta.update(format={"name": "leadline", "version": 2})
    path = tmp_path / "run.leadline"
    write_profile(path, profile)
    server = ViewServer(View.opened([str(path)], open_profile))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server, path, source
    server.close()
    thread.join(10)


def get(server, path, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{server.port}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def base(server):
    return urlsplit(server.address).path


def test_the_page_and_its_parts(served):
    server, path, source = served
    status, page = get(server, base(server))
    assert status == 200
    assert b"connect-src 'self'" in page
    assert get(server, base(server) + "profile/0") == (200, path.read_bytes())
    report = json.loads(get(server, base(server) + "report/0")[1])
    assert report["totals"]["time"]["sum"] == 5
    assert "findings" in json.loads(get(server, base(server) + "findings/0")[1])
    text = json.loads(get(server, base(server) + "source?file=" + quote(str(source)))[1])["text"]
    assert text == source.read_text().rstrip("\n")


def test_no_other_file_is_handed_out(served, tmp_path):
    server, *_ = served
    (tmp_path / "secret.py").write_text("key = 1")
    for file in ("/etc/passwd", str(tmp_path / "secret.py"), "../../etc/passwd", ""):
        assert json.loads(get(server, base(server) + "source?file=" + quote(file))[1]) == {"text": None}


@pytest.mark.parametrize("path", ["/", "/profile/0", "/wrong/", "/wrong/profile/0", "//", "/%00/"])
def test_nothing_without_the_token(served, path):
    status, body = get(served[0], path)
    assert status == 404
    assert b"leadline" not in body or b"leadline view" in body


@pytest.mark.parametrize("part", ["profile/1", "profile/-1", "profile/", "profile/x", "profile/0/..", "other"])
def test_parts_that_are_not_there(served, part):
    assert get(served[0], base(served[0]) + part)[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost", "127.0.0.1"])
def test_another_name_for_this_machine_is_refused(served, host):
    assert get(served[0], base(served[0]), host=host)[0] == 403


def test_a_profile_that_has_gone_is_shown_as_it_was_opened(served, tmp_path):
    server, path, _ = served
    path.unlink()
    status, body = get(server, base(server) + "profile/0")
    assert status == 200
    (tmp_path / "again.leadline").write_bytes(body)
    assert open_profile(tmp_path / "again.leadline").tree.inclusive("time").sum[0] == 5


@pytest.mark.parametrize("when", ["while it is read", "afterwards", "in its place"])
def test_the_tree_and_the_report_are_of_one_file(tmp_path, when):
    path, newer = tmp_path / "run.leadline", tmp_path / "newer.leadline"
    for file, ns in ((path, 5), (newer, 7)):
        write_profile(file, build(f"operator aten::mm | time={ns} call_time={ns}"))

    def replace():
        path.write_bytes(newer.read_bytes()) if when == "in its place" else newer.replace(path)

    def read(name):
        opened = open_profile(name)
        if when == "while it is read":
            replace()
        return opened

    view = View.opened([str(path)], read)
    if when != "while it is read":
        replace()
    (tmp_path / "shown.leadline").write_bytes(view.answer("profile/0", {})[1])
    assert open_profile(tmp_path / "shown.leadline").tree.inclusive("time").sum[0] == 5
    assert json.loads(view.answer("report/0", {})[1])["totals"]["time"]["sum"] == 5


def test_the_verb_prints_the_address_and_ends_with_an_interrupt(served):
    _, path, _ = served
    command = [sys.executable, "-m", "leadline.cli.main", "view", path.name, "--no-browser"]
    view = subprocess.Popen(command, cwd=path.parent, stdout=subprocess.PIPE, text=True)
    line = view.stdout.readline()
    assert line.startswith("http://127.0.0.1:")
    view.send_signal(2)
    assert view.wait(30) == 0


def test_a_file_that_is_no_profile_is_a_sentence(tmp_path):
    (tmp_path / "x.leadline").write_bytes(b"no")
    command = [sys.executable, "-m", "leadline.cli.main", "view", "x.leadline", "--no-browser"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "is not a Leadline profile or is cut off" in done.stderr


def test_an_answer_is_made_once(served):
    server, *_ = served
    first, again = (get(server, base(server) + "report/0") for _ in range(2))
    assert first == again
    assert io.BytesIO(first[1]).read(1) == b"{"


TRACE = {
    "schemaVersion": 1,
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 100, "dur": 50, "args": {}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 160, "dur": 10, "args": {}},
    ],
}


def test_the_trace_of_another_profiler_is_handed_out_as_a_profile(tmp_path):
    (tmp_path / "trace.json").write_text(json.dumps(TRACE))
    opened = cli_open(str(tmp_path / "trace.json"))
    status, data = View([(str(tmp_path / "trace.json"), opened)]).answer("profile/0", {})
    (tmp_path / "again.leadline").write_bytes(data)
    again = open_profile(tmp_path / "again.leadline")
    assert status == "application/octet-stream"
    assert again.tree.exclusive("time").sum.sum() == opened.tree.exclusive("time").sum.sum() == 60_000


def test_of_two_profiles_the_source_is_that_of_the_one_whose_lines_are_shown(tmp_path):
    views = []
    for name in ("before", "after"):
        source = tmp_path / f"{name}.py"
        source.write_text(f"{name}()\n")
        profile = build(f"python main @ {source}:1\n  operator aten::mm | time=5 call_time=5")
        views.append((f"{name}.leadline", profile))
    view = View(views)
    text = {
        name: json.loads(view.answer("source", {"file": [str(tmp_path / f"{name}.py")]})[1])
        for name in ("before", "after")
    }
    assert text == {"before": {"text": "before()"}, "after": {"text": None}}


def test_the_page_is_there_before_the_profile_and_the_rest_waits_for_it(tmp_path):
    path = tmp_path / "run.leadline"
    write_profile(path, build("operator aten::mm | time=5 call_time=5"))
    opening = Opening(lambda: "early")
    server = ViewServer(opening)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        assert get(server, base(server)) == (200, b"early")
        got: list[tuple[int, bytes]] = []
        asking = threading.Thread(target=lambda: got.append(get(server, base(server) + "profile/0")))
        asking.start()
        assert not got
        opening.opened(View.opened([str(path)], open_profile))
        asking.join(20)
        assert got == [(200, path.read_bytes())]
        assert get(server, base(server))[1] != b"early"
    finally:
        server.close()
        thread.join(10)


@pytest.mark.parametrize(("text", "printed"), [(None, False), ("no profile", True)])
def test_a_file_that_cannot_be_read_ends_the_server_with_a_sentence(tmp_path, text, printed):
    bad = tmp_path / "bad.leadline"
    if text is not None:
        bad.write_text(text)
    command = [sys.executable, "-m", "leadline", "view", str(bad), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith("http") == printed
    assert done.stderr.startswith("leadline: ") and "Traceback" not in done.stderr
