"""`leadline whatif`: the report in its formats, timelines, and what the user is told when something is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from leadline.cli.main import main

NAMES = {
    "amp", "fused_optimizer", "batchnorm_restructuring", "distributed", "p3", "blueconnect", "metaflow", "vdnn", "gist",
    "dgc", "launch_free", "fuse_elementwise", "precision", "batch_size", "data_loading", "remove_sync", "faster",
    "kernel_speedup", "no_straggler", "activation_checkpointing", "cpu_threads",
}  # fmt: skip


def kineto(steps: int = 2) -> dict[str, object]:
    """A small trace: in each step two launches and two kernels, one after another, and a wait for them."""
    events: list[dict[str, object]] = []
    for step in range(steps):
        base = 1000.0 * step
        events.append(
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step + 3}", "pid": 1, "tid": 1, "ts": base, "dur": 990.0}
        )  # fmt: skip
        for number in range(2):
            correlation = 10 * step + number + 1
            start = base + 10 + 20 * number
            operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": start, "dur": 15.0,
                        "args": {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}}  # fmt: skip
            call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start + 5,
                    "dur": 5.0, "args": {"correlation": correlation}}  # fmt: skip
            kernel = {"ph": "X", "cat": "kernel", "name": "volta_sgemm_64x64", "pid": 0, "tid": 7,
                      "ts": base + 40 + 450 * number, "dur": 450.0,
                      "args": {"correlation": correlation, "stream": 7, "device": 0}}  # fmt: skip
            events += [operator, call, kernel]
        events.append(
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": base + 50,
             "dur": 890.0, "args": {"correlation": 10 * step + 9}}
        )  # fmt: skip
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA GeForce RTX 2080 Ti", "totalGlobalMem": 11_000_000_000}],
        "traceEvents": events,
    }


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(kineto()))
    return str(path)


def test_ranked_json_has_the_documented_keys(trace, capsys):
    assert main(["whatif", trace, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    keys = ["measured_ns", "replayed_ns", "replay_error", "causal_error", "steps", "window", "scenarios", "warnings"]
    assert list(report) == [*keys, "not_applicable", "coverage"]
    assert "not validated on hardware" in report["coverage"]
    assert report["steps"] == [3, 4]
    assert abs(report["replay_error"]) < 0.01
    for found in report["scenarios"]:
        keys = [
            "name",
            "title",
            "hypothetical",
            "samples",
            "predicted_ns",
            "speedup",
            "low_ns",
            "high_ns",
            "low_gain",
            "high_gain",
            "verdict",
        ]
        assert list(found) == [*keys, "assumptions", "applied_to", "warnings"]
        assert found["name"] in NAMES
        assert found["low_ns"] < found["high_ns"], "two steps leave a doubt in every time"
    speedups = {found["name"]: found["speedup"] for found in report["scenarios"]}
    assert speedups["amp"] > 1.5, "two matrix kernels in a row on tensor cores"


def test_text_says_what_to_do(trace, capsys):
    assert main(["whatif", trace]) == 0
    text = capsys.readouterr().out
    assert "1. Train in mixed precision" in text
    assert "Basis:" in text
    assert "bound most by the gpu" in text
    assert "distributed: the number of workers is not given" in text


def test_markdown_to_a_file(trace, tmp_path):
    out = tmp_path / "report.md"
    assert main(["whatif", trace, "-o", str(out)]) == 0
    assert out.read_text().startswith("# What if\n")
    assert "| amp |" in out.read_text()


def test_combined_with_parameters(trace, capsys):
    arguments = ["whatif", trace, "--scenario", "amp", "--scenario", "distributed", "--set", "world_size=16"]
    arguments += ["--set", "bandwidth=25GB/s", "--set", "latency=5us", "--set", "gradient_bytes=1MB"]
    assert main([*arguments, "--format", "json"]) == 2, "the window has no backward pass"
    assert "no backward pass" in capsys.readouterr().err
    assert (
        main(["whatif", trace, "--scenario", "amp", "--scenario", "faster", "--set", "factor=3", "--format", "json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["scenarios"][0]["name"] == "amp+faster"


def test_replay_and_critical_path(trace, capsys):
    assert main(["whatif", trace, "--replay", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenarios"] == []
    assert main(["whatif", trace, "--critical-path"]) == 0
    text = capsys.readouterr().out
    assert "Critical path of replayed step" in text
    assert "volta_sgemm_64x64" in text


def test_window_of_steps(trace, capsys):
    assert main(["whatif", trace, "--steps", "4", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == [4]
    assert main(["whatif", trace, "--steps", "9"]) == 2
    assert "it has steps 3 to 4" in capsys.readouterr().err


def test_list_names_every_scenario(capsys):
    assert main(["whatif", "--list", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == NAMES
    assert len(rows) == len(NAMES)
    assert main(["whatif", "--list"]) == 0
    assert "bandwidth: what one worker can send" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--scenario", "ampp"], "did you mean amp"),
        (["--scenario", "distributed", "--set", "bandwith=1GB/s"], "no parameter of distributed"),
        (["--scenario", "distributed", "--set", "world_size"], "write it like --set"),
        (
            ["--scenario", "distributed", "--set", "world_size=8", "--set", "bandwidth=3"],
            "write it like bandwidth=25GB/s",
        ),
        (["--scenario", "faster", "--set", "device=toaster"], "choose gpu, cpu, network, pcie"),
        (["--scenario", "faster", "--set", "factor=0"], "must be greater than 0"),
        (["--scenario", "data_loading"], "the trace has no data loading"),
        (["--steps", "a-b"], "not a range of steps"),
        (["--export", "perfetto"], "name it with -o OUT"),
    ],
)
def test_mistakes_are_one_sentence(trace, capsys, arguments, sentence):
    assert main(["whatif", trace, *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_no_file(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["whatif"]) == 2
    assert "No FILE was given" in capsys.readouterr().err


def test_perfetto_timelines(trace, tmp_path):
    """Measured, replayed and predicted beside one another, read back with Perfetto's own message definitions."""
    messages = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        reason="reading a Perfetto trace needs the package perfetto",
    )
    out = tmp_path / "out.pftrace"
    assert main(["whatif", trace, "--scenario", "faster", "--export", "perfetto", "-o", str(out)]) == 0
    parsed = messages.Trace.FromString(out.read_bytes())
    names: dict[int, str] = {}
    processes, timelines, depth, kernels = {}, {}, {}, {}
    for packet in parsed.packet:
        for entry in packet.interned_data.event_names:
            names[entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            if descriptor.HasField("thread"):
                timelines[descriptor.uuid] = descriptor.thread.pid
            if descriptor.HasField("process"):
                processes[descriptor.process.pid] = descriptor.process.process_name
        if packet.HasField("track_event"):
            event = packet.track_event
            begins = event.type == messages.TrackEvent.TYPE_SLICE_BEGIN
            depth[event.track_uuid] = depth.get(event.track_uuid, 0) + (1 if begins else -1)
            assert depth[event.track_uuid] >= 0
            timeline = timelines[event.track_uuid]
            if begins and names[event.name_iid] == "volta_sgemm_64x64":
                kernels.setdefault(timeline, []).append(packet.timestamp)
    assert [processes[pid] for pid in sorted(processes)] == ["measured", "replayed", "predicted: faster gpu 2x"]
    assert set(depth.values()) == {0}, "every slice is closed"
    spacing = {timeline: times[1] - times[0] for timeline, times in kernels.items()}
    assert spacing[1] == spacing[2] == 450_000
    assert spacing[3] == 225_000


def test_a_timeline_without_a_scenario_shows_the_best_advice(trace, tmp_path):
    out = tmp_path / "out.pftrace"
    assert main(["whatif", trace, "--export", "perfetto", "-o", str(out)]) == 0
    assert b"measured" in out.read_bytes() and b"predicted: amp" in out.read_bytes()
    assert main(["whatif", trace, "--replay", "--export", "perfetto", "-o", str(out)]) == 0
    assert b"replayed" in out.read_bytes() and b"predicted" not in out.read_bytes()


def test_stragglers_from_parquet(capsys):
    pytest.importorskip("pyarrow", reason="reading parquet needs the extra leadline[parquet]")
    path = Path(__file__).resolve().parents[3] / "shared" / "traces" / "bytedance-straggler" / "trace-ST.parquet"
    if not path.exists():
        pytest.skip("the published straggler traces are not at ../shared/traces/bytedance-straggler")
    assert main(["whatif", str(path), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["scenarios"][0]["name"] == "no_straggler"
    assert report["scenarios"][0]["speedup"] == pytest.approx(1.1787, rel=0.001)
    keys = ["measured_ns", "replayed_ns", "replay_error", "steps", "window", "scenarios", "warnings"]
    assert list(report) == keys
    assert "pipeline stage 3 alone slows the job by 1.232" in report["warnings"]
    assert main(["whatif", str(path)]) == 0
    assert "stage 3: 1.232" in capsys.readouterr().out
    assert main(["whatif", str(path), "--scenario", "amp"]) == 2
    assert "whole operations of workers" in capsys.readouterr().err
    assert main(["whatif", str(path), "--scenario", "no_straggler", "--scenario", "faster", "--format", "json"]) == 0
    both = json.loads(capsys.readouterr().out)["scenarios"][0]
    assert both["speedup"] > 1.2 and both["applied_to"]["operations"] == 6816
    assert main(["whatif", str(path), "--replay", "--steps", "{}-{}".format(*report["steps"][0:3:2])]) == 0
    text = capsys.readouterr().out
    assert "over 3 steps" in text and "forward-compute" in text and "before an operation of a job" in text


def test_a_page_by_its_ending(trace, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["whatif", trace, "-o", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])["changes"]
    assert data["program"] == Path(trace).name
    assert data["bars"][0]["before"] and data["bars"][0]["ns"] > 0
    assert {one["sort"] for one in data["parts"]} <= {"work", "wait", "residual"}
    assert sum(one["ns"] for one in data["parts"]) == pytest.approx(data["bars"][0]["ns"], rel=0.05)
    assert main(["whatif", "--list", "--format", "html"]) != 0
    assert "use --format text" in capsys.readouterr().err
