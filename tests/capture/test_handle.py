"""`leadline.current()`, its endpoint, and requests by route."""

import json
import os
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from leadline.capture.endpoint import Endpoint
from leadline.capture.handle import Current
from leadline.capture.metrics import metrics_text
from leadline.capture.requests import MOST_ROUTES, OTHERS, Requests, folded
from leadline.profiles import open_profile


def run(folder: Path, program: str, *words: str) -> str:
    (folder / "program.py").write_text(textwrap.dedent(program))
    command = [sys.executable, *words, str(folder / "program.py")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def regions(path: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in open_profile(path).tree.find(kind="region"):
        found[node.name] = found.get(node.name, 0) + node.exclusive("call_time").count
    return found


def test_a_program_measures_itself_takes_snapshots_and_goes_on(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        """
        import leadline
        now = leadline.current()
        assert not now.running and now.output is None and now.stop() is None and now.stats() is None
        now.start("out.leadline", quiet=True)
        now.labels(model="small", run=3)
        now.labels(run=None)
        with now.region("first", of="two"):
            pass
        taken = now.snapshot("taken.leadline")
        with now.region("second"):
            pass
        assert now.running
        print(now.stop())
        """,
    )
    assert regions(tmp_path / "taken.leadline") == {"first": 1}
    assert out.strip().endswith("out.leadline")
    assert regions(tmp_path / "out.leadline") == {"first": 1, "second": 1}
    assert open_profile(tmp_path / "out.leadline").meta["processes"][0]["labels"] == {"model": "small"}


def test_a_session_from_outside_rests_and_goes_on(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        import leadline
        now = leadline.current()
        with now.region("before"): pass
        assert now.stop() is None and not now.running
        leadline.pause(); leadline.resume()
        with now.region("resting"): pass
        now.start()
        with now.region("after"): pass
        """,
        "-m", "leadline", "run", "-q", "-o", str(tmp_path / "out.leadline"),
    )  # fmt: skip
    assert regions(tmp_path / "out.leadline") == {"before": 1, "after": 1}


def ask(address: str, method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
    request = urllib.request.Request(address + path, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_the_endpoint_answers_nobody_without_its_token(tmp_path: Path) -> None:
    endpoint = Endpoint(Current())
    try:
        good = {"Authorization": f"Bearer {endpoint.token}"}
        for headers in ({}, {"Authorization": "Bearer x"}, {**good, "Host": "evil.example"}):
            assert ask(endpoint.address, "GET", "/metrics", headers)[0] == 403
        status, body = ask(endpoint.address, "GET", "/metrics", good)
        assert status == 200 and b"leadline_running 0\n" in body
        assert json.loads(ask(endpoint.address, "GET", "/status", good)[1])["running"] is False
        assert ask(endpoint.address, "POST", "/snapshot", good)[0] == 409
        assert ask(endpoint.address, "POST", "/snapshot?format=../../etc", good)[0] == 400
        assert ask(endpoint.address, "GET", "/etc/passwd", good)[0] == 404
        endpoint.write_port_file(tmp_path / "port")
        assert (tmp_path / "port").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "port").read_text().split() == [endpoint.address, endpoint.token]
    finally:
        endpoint.close()


def test_start_stop_and_snapshot_over_http(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        import json, os, leadline, urllib.request
        now = leadline.current()
        endpoint = now.serve()
        def ask(method, path):
            headers = {"Authorization": "Bearer " + endpoint.token}
            request = urllib.request.Request(endpoint.address + path, method=method, headers=headers)
            return urllib.request.urlopen(request, timeout=60).read()
        assert json.loads(ask("POST", "/start"))["running"]
        with now.request("GET", "/items/17"): pass
        open("taken.leadline", "wb").write(ask("POST", "/snapshot"))
        assert ask("POST", "/snapshot?format=collapsed") is not None
        from leadline import _native
        _native.count_loss("provider_unavailable", 2, "No GPU.")
        _native.count_loss("provider_unavailable", 1, "No kernel either.")
        told = ask("GET", "/metrics").decode().splitlines()
        assert any('route="GET /items/{}"' in line for line in told)
        (lost,) = [line for line in told if line.startswith("leadline_losses_total") and "provider_unav" in line]
        assert lost.endswith(" 3"), lost
        print(json.loads(ask("POST", "/stop"))["file"])
        endpoint.close()
        """,
    )
    assert regions(tmp_path / "taken.leadline") == {"GET /items/{}": 1}


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/items/17", "/items/{}"),
        ("/a/123e4567-e89b-12d3-a456-426614174000/b", "/a/{}/b"),
        ("/deadbeef01/x?user=3", "/{}/x"),
        ("/v1/chat", "/v1/chat"),
        ("", "/"),
    ],
)
def test_paths_fold(path: str, route: str) -> None:
    assert folded(path) == route


def test_clients_cannot_make_routes_without_end() -> None:
    requests = Requests()
    names = {requests.name("GET", f"/x{number}y", "") for number in range(2 * MOST_ROUTES)}
    assert len(names) == MOST_ROUTES + 1 and OTHERS in names
    assert requests.name("get\n", "/", "") in ("? /", OTHERS)


def test_labels_are_escaped() -> None:
    from leadline.capture.metrics import _labels

    assert _labels({"a": 'x"\\\n'}) == '{a="x\\"\\\\\\n"}'
    assert metrics_text(Current()).endswith("\n")


def test_a_flask_application_by_rule(tmp_path: Path) -> None:
    pytest.importorskip("flask")
    run(
        tmp_path,
        """
        import flask, leadline
        app = flask.Flask("x")
        @app.get("/users/<name>")
        def user(name):
            return name
        @app.get("/lines")
        def lines():
            return (str(n) for n in range(3))
        app.wsgi_app = leadline.serving.wsgi(app.wsgi_app, app.url_map)
        client = app.test_client()
        with leadline.profile("out.leadline", quiet=True):
            assert [client.get(f"/users/{name}").text for name in ("ann", "bob")] == ["ann", "bob"]
            assert client.get("/lines").text == "012"
            assert client.get("/nothing").status_code == 404
        """,
    )
    found = regions(tmp_path / "out.leadline")
    assert (found["GET /users/<name>"], found["GET /nothing"], found["GET /lines"]) == (2, 1, 1)
    assert found["GET /lines (body)"] >= 3


def test_a_fastapi_application_by_route_also_on_its_threads(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("httpx")
    run(
        tmp_path,
        """
        import asyncio, httpx, leadline
        from fastapi import FastAPI
        api = FastAPI()
        @api.get("/slow/{user}")
        async def slow(user: str):
            with leadline.region("inside"):
                await asyncio.sleep(0)
            return user
        @api.get("/plain/{user}")
        def plain(user: str):
            with leadline.region("on a thread"):
                return user
        app = leadline.serving.asgi(api)
        async def main():
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
                answers = await asyncio.gather(*(client.get(f"/{kind}/u{n}") for kind in ("slow", "plain") for n in range(4)))
                assert [one.json() for one in answers] == [f"u{n}" for _ in range(2) for n in range(4)]
        with leadline.profile("out.leadline", quiet=True):
            asyncio.run(main())
        from leadline.capture.requests import REQUESTS
        assert {name: one.count for name, one in REQUESTS.routes.items()} == {"GET /slow/{user}": 4, "GET /plain/{user}": 4}
        """,
    )
    tree = open_profile(tmp_path / "out.leadline").tree
    for name, route in (("inside", "GET /slow/{user}"), ("on a thread", "GET /plain/{user}")):
        nodes = list(tree.find(kind="region", name=name))
        assert sum(node.exclusive("call_time").count for node in nodes) == 4
        assert all(route in [one.name for one in node.path()] for node in nodes)


SERVED = """
import os, sys, time, urllib.request
def ask(place, method, path):
    address, token = open(place).read().split()
    request = urllib.request.Request(address + path, method=method, headers={"Authorization": "Bearer " + token})
    return urllib.request.urlopen(request, timeout=60).read()
if os.fork() == 0:
    os._exit(0)  # lets go of the parent's socket and ends without waiting for its server
os.wait()
mine = os.path.abspath("port") if len(sys.argv) == 1 else os.path.abspath("port") + f".{os.getpid()}"
open("taken.leadline", "wb").write(ask(mine, "POST", "/snapshot"))
if len(sys.argv) == 1:
    import subprocess
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""


def test_a_program_that_knows_nothing_of_it_is_asked_from_outside(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SERVED)
    (tmp_path / "port").write_text("http://127.0.0.1:1 left by a run before\n")
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "--endpoint", "port", "program.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "taken.leadline").stat().st_size > 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.leadline", "program.py", "taken.leadline"]
    (tmp_path / "port").write_text("the harbour\n")
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode != 0 and "name another file" in done.stderr
    assert (tmp_path / "port").read_text() == "the harbour\n"
