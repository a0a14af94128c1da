"""`vllm serve` under `leadline run` as an operator has it: load over HTTP, `top`, `attach`, and every way to end. Nightly."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import pytest

from leadline.analysis.analyze import analyze
from leadline.engines import Engine, engines_of, together
from leadline.profiles import Profile, open_profile

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"),
    pytest.mark.timeout(1200),
]
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))


def measured(server: object) -> tuple[Profile, Engine]:
    profile = open_profile(server.profile)  # type: ignore[attr-defined]
    engine = together(engines_of(profile.meta))
    assert engine is not None
    return profile, engine


def leadline(*words: str) -> str:
    command = [sys.executable, "-m", "leadline", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_server_under_load_and_its_end(tmp_path: Path, end: int) -> None:
    from vllm_server import Server

    server = Server(tmp_path, "served", [])
    try:
        said = server.load(40, "--request-rate", "10")
        assert "output tokens a second" in leadline("top", "--once", str(server.profile))
        time.sleep(7)  # a flush: vLLM kills its engine, which loses what it did after its last one
    finally:
        status = server.stop(end)
    profile, engine = measured(server)
    assert status in (0, 128 + end, -end)
    assert engine.number >= said["completed"] == 40  # vLLM's client asks once before
    assert engine.output_tokens >= said["total_output_tokens"]
    assert engine.moved == ""
    assert profile.meta["complete"]  # vLLM ends its engine with SIGKILL
    median_ms = said.get("median_ttft_ms", said.get("p50_ttft_ms"))
    assert engine.of("ttft").quantile(0.5) / 1e6 < 1.1 * median_ms + 5  # the client sees more than the server
    report = json.loads(leadline("report", "--format", "json", str(server.profile)))
    assert report["serving"]["ended"] == dict(engine.ended)


def test_a_worker_that_is_killed_is_said_to_be(tmp_path: Path) -> None:
    from vllm_server import Server

    server = Server(tmp_path, "killed", [])
    try:
        server.load(20, "--request-rate", "10")
        time.sleep(6)  # a flush
        os.kill(server.pids()["worker"], signal.SIGKILL)
        server.process.wait(120)
    finally:
        server.stop()
    profile, engine = measured(server)
    assert engine.number >= 20
    assert not profile.meta["complete"]
    assert any("without stopping" in one.detail for one in profile.losses)


def test_more_requests_than_it_ends_are_a_growing_queue(tmp_path: Path) -> None:
    from vllm_server import Server

    server = Server(tmp_path, "grows", [], ("--max-num-seqs", "1"))
    load = subprocess.Popen([sys.executable, "-c", _LOAD, str(server.port), "500", "500", "0.05"])
    try:
        time.sleep(25)
    finally:
        server.stop()  # while they still come
        load.kill()
        load.wait()
    profile, engine = measured(server)
    assert max(point[1] for point in engine.points) > 8
    assert "growing_queue" in {one.rule for one in analyze(profile)}


def test_an_attach_to_a_server_that_runs(tmp_path: Path) -> None:
    from vllm_server import Server

    server = Server(tmp_path, "attached", None)
    try:
        pids = server.pids()
        load = subprocess.Popen([sys.executable, "-c", _LOAD, str(server.port), "200", "4", "0"])
        told = subprocess.run(
            [
                *(sys.executable, "-m", "leadline", "attach", str(pids["engine"])),
                *("--seconds", "8", "-o", str(server.profile)),
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        load.wait(300)
    finally:
        server.stop()
    assert f"measuring process {pids['engine']}" in told.stderr
    _, engine = measured(server)
    assert engine.number_of_steps > 10
    assert engine.number > 5


_LOAD = """
import json, sys, time, urllib.request
from concurrent.futures import ThreadPoolExecutor
port, number, threads, gap_s = sys.argv[1:]
name = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models"))["data"][0]["id"]
def ask(at):
    body = {"model": name, "prompt": [3 + (at + j) % 900 for j in range(40)], "max_tokens": 24, "ignore_eos": True}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(),
                                   {"Content-Type": "application/json"})
    urllib.request.urlopen(asked).read()
with ThreadPoolExecutor(int(threads)) as pool:
    for at in range(int(number)):
        pool.submit(ask, at)
        time.sleep(float(gap_s))
"""


@pytest.mark.skipif(
    importlib.util.find_spec("opentelemetry.exporter") is None, reason="OpenTelemetry's exporters are not installed"
)
def test_the_slowest_requests_are_the_spans_of_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from vllm_server import Server

    spans: dict[str, dict[str, float]] = {}

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            for resource in ExportTraceServiceRequest.FromString(sent).resource_spans:
                for one in (span for scope in resource.scope_spans for span in scope.spans):
                    if one.name == "llm_request":
                        said = {each.key: each.value.double_value for each in one.attributes}
                        spans[one.trace_id.hex()] = said
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=collector.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
    where = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    server = Server(tmp_path, "traced", [], ("--otlp-traces-endpoint", where))
    try:
        for number in range(12):
            _ask(server, {"traceparent": f"00-{number + 1:032x}-b7ad6b7169203331-01"} if number % 2 else {})
        time.sleep(7)
        _ask(server, {})  # the engine writes what it counted at the next step, once five seconds have passed
        time.sleep(2)  # vLLM's own batch of spans
    finally:
        server.stop()
        collector.shutdown()
    _, engine = measured(server)
    traced = {one.trace: one for one in engine.slowest if one.trace}
    assert set(traced) == {f"{number + 1:032x}" for number in range(12) if number % 2}
    assert len(spans) >= 12
    for trace, one in traced.items():
        assert one.e2e_ns / 1e9 <= spans[trace]["gen_ai.latency.e2e"] + 0.001  # the span ends in the server, later
        queued = spans[trace]["gen_ai.latency.time_in_queue"]
        assert queued <= one.values["queue"] / 1e9 + 0.001  # ours begins at the server, the span's at the engine


def _ask(server: object, headers: dict[str, str]) -> None:
    port, model = server.port, str(server.model)  # type: ignore[attr-defined]
    body = {"model": model, "prompt": [3 + at for at in range(40)], "max_tokens": 8, "ignore_eos": True}
    asked = Request(
        f"http://127.0.0.1:{port}/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **headers},
    )
    urlopen(asked, timeout=120).read()
