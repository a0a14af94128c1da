"""The text report and the summary, drawn tree in, printed report out."""

from __future__ import annotations

import io
import json
import re

import pytest
from drawings import HOSTILE, hostile, training

from leadline.profiles import ProfileFileError
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile
from leadline.report import ReportOptions, build_report
from leadline.report.encoding import encodable
from leadline.report.json_report import render_json
from leadline.report.markdown import render_markdown
from leadline.report.summary import print_summary, render_summary, summarize
from leadline.report.text import render_text

REPORT = r"""
Leadline  train.py --steps 2
2026-11-21T05:20:00Z · 12.0 ms · Python 3.11.7 · torch 2.13.0 · atlas, Linux x86_64, 8 CPUs
options: memory

Phases  shares of 5.00 ms in all
  phase            time  share  operators  allocated
  forward       2.60 ms   52 %          8   8.00 KiB
  backward      1.60 ms   32 %          6   8.00 KiB
  optimizer      500 µs   10 %          8        0 B
  data loading   300 µs  6.0 %          3        0 B

Time  shares of each thread's wall time from its first event on; ~ marks an estimate
  thread          wall  operators  Python  data loading   idle
  main thread  10.0 ms       60 %   ~20 %          10 %  ~10 %  ooooooooooooooPPPPPddd..

Hottest call paths by time  shares of 5.00 ms in all; your line, below it module, phase, operator
   1    52 %    2.60 ms  model/gpt.py:12 Block.forward  4 calls
        model.h.* (Block, 2 modules) › aten::linear
        from model/gpt.py:30 GPT.forward ← train.py:70 main ← train.py:88
   2    32 %    1.60 ms  model/gpt.py:12 Block.forward  2 calls
        model.h.0 (Block) › backward › AddmmBackward0
        from model/gpt.py:30 GPT.forward ← train.py:70 main ← train.py:88
   3    10 %     500 µs  train.py:70 main  2 calls
        optimizer › Optimizer.step#SGD.step
        from train.py:88
   4   6.0 %     300 µs  train.py:70 main  3 calls
        data loading › aten::stack
        from train.py:88

Operators  by self time
  operator                 calls     self    total     mean     std  allocated
  aten::addmm                  4  2.40 ms  2.40 ms   600 µs  100 µs   8.00 KiB
  aten::mm                     4  1.50 ms  1.50 ms   375 µs    0 ns   8.00 KiB
  aten::add_                   6   300 µs   300 µs  50.0 µs    0 ns        0 B
  aten::stack                  3   300 µs   300 µs   100 µs    0 ns        0 B
  Optimizer.step#SGD.step      2   200 µs   500 µs   250 µs    0 ns        0 B
  aten::linear                 4   200 µs  2.60 ms   650 µs  100 µs        0 B
  AddmmBackward0               2   100 µs  1.60 ms   800 µs    0 ns        0 B

Modules  with their submodules; backward counted where its forward ran
  module     class    total  forward  backward     self
  model      GPT    4.20 ms  2.60 ms   1.60 ms     0 ns
  model.h.*  Block  4.20 ms  2.60 ms   1.60 ms  4.20 ms

Tensor memory  16.0 KiB in 6 allocations, 0 B freed
  peak 8.00 KiB on CPU; alive at that moment:
       100 %   8.00 KiB  model/gpt.py:12 Block.forward  model.h.* › aten::linear

Capture quality
  overhead about 2.2 %, 64.0 KiB held
  12 × free_unknown: memory freed that was allocated before measuring began
  1 × provider_unavailable: CUPTI is held by nsys.

Next
  leadline report run.leadline --format html -o run.html
  leadline report run.leadline --focus 'model/gpt\.py:12$'
  leadline export run.leadline --format speedscope -o run.speedscope.json
"""

SUMMARY = r"""
leadline  train.py --steps 2  12.0 ms  >  run.leadline
time      operators 60 %, Python ~20 %, data loading 10 %, idle ~10 %
hottest     52 %   2.60 ms  model/gpt.py:12 Block.forward  model.h.* › aten::linear
            32 %   1.60 ms  model/gpt.py:12 Block.forward  model.h.0 › backward › AddmmBackward0
            10 %    500 µs  train.py:70 main  optimizer › Optimizer.step#SGD.step
           6.0 %    300 µs  train.py:70 main  data loading › aten::stack
memory    peak 8.00 KiB of tensors on CPU, 100 % from model/gpt.py:12 Block.forward
quality   not everything was measured: 12 free_unknown, 1 provider_unavailable; overhead about 2.2 %
next      leadline report run.leadline --format html -o run.html
          leadline report run.leadline --focus 'model/gpt\.py:12$'
          leadline export run.leadline --format speedscope -o run.speedscope.json
"""

VERDICT = """\
10.0 ms in all, no steps
compute-bound on the CPU: matrix products and convolutions 4.17 ms, 42 % of the run, most of it
          aten::addmm   model/gpt.py:12
  because off a core, in short waits 1.00 ms, 10 % of the run
          unexplained 3.73 ms, 37 % of the run
trust     not measured: CUPTI is held by nsys, 12 measurements lost (memory freed that was allocated
          before measuring began), overhead about 2.2 %, 37 % of the run is not explained, Python
          was not sampled, nothing repeats often enough to be a step; leadline.step() marks one
"""


def printed(profile, **options):
    return render_text(build_report(profile, ReportOptions(merge_layers=True, **options), "run.leadline"))


def test_report():
    assert printed(training()) == REPORT.removeprefix("\n")


def test_summary():
    assert summarize(training(), "run.leadline") == SUMMARY.removeprefix("\n")


def test_every_thread_that_worked_is_shown_with_its_rank():
    profile = build("""
    process train.py | pid=1 rank=0
      thread MainThread | tid=1 wall_ns=1000 operator_ns=500 data_ns=0 cpu_ns=600
      thread autograd | tid=2 wall_ns=1000 operator_ns=400 data_ns=0 cpu_ns=400
      thread pin_memory | tid=3 wall_ns=1000 operator_ns=1 data_ns=0 cpu_ns=1
    process worker | pid=4 parent_pid=1 rank=0
      thread MainThread | tid=4 wall_ns=1000 operator_ns=0 data_ns=0 cpu_ns=0
    process train.py 2 | pid=9 rank=1
      thread MainThread | tid=9 wall_ns=1000 operator_ns=100 data_ns=700 cpu_ns=100
    """)
    assert printed(profile).split("\n\n")[1].splitlines()[1:] == [
        "  thread                          wall  operators  Python  data loading    idle",
        "  rank 0, main thread          1.00 µs       50 %   ~10 %           0 %   ~40 %  ooooooooPP......",
        "  rank 0, autograd             1.00 µs       40 %     0 %           0 %   ~60 %  oooooo..........",
        "  rank 0 child 4, main thread  1.00 µs        0 %     0 %           0 %  ~100 %  ................",
        "  rank 1, main thread          1.00 µs       10 %     0 %          70 %   ~20 %  ooddddddddddd...",
        "  1 more thread ran for 1 ns in all",
    ]


def test_a_device_has_a_section_of_its_own_and_orders_the_paths():
    profile = build("""
    python main @ /home/ada/train.py:3
      operator aten::mm | time=900 call_time=900
        api cudaLaunchKernel | time=50
          kernel sgemm<float> | gpu_time@0:7=6000/3
      operator aten::copy_ | time=10 call_time=10
        copy HtoD | gpu_time@0:7=2000 copy_bytes@0:7=4096
        api cudaStreamSynchronize | sync_time=700
    """)
    text = printed(profile)
    assert "Hottest call paths by GPU time" in text
    assert "Devices  threads waited 700 ns for devices\n" in text
    assert "  GPU 0 (device 0)        3  6.00 µs  2.00 µs  4.00 KiB   n/a   n/a                   n/a\n" in text
    assert "  sgemm  kernel      3  6.00 µs   75 %  2.00 µs  0 ns\n" in text
    assert "  aten::mm         1  900 ns  900 ns  900 ns  0 ns  6.00 µs" in text


@pytest.mark.parametrize(
    ("ran", "said"),
    [
        ("sync_running_time=700000", "of 700 µs of waiting for a device it spun on a core for 700 µs"),
        ("sync_running_time=2000", "of 700 µs of waiting for a device it slept for 698 µs"),
        ("", None),
    ],
)
def test_a_wait_for_a_device_spins_or_sleeps(ran, said):
    profile = build(f"""
    process p | pid=5
      thread T | tid=5 wall_ns=1000000
        python main @ /a/t.py:7
          api cudaStreamSynchronize | time=700000 sync_time=700000 {ran}
    """)
    text = render_text(build_report(profile))
    assert "wait: a device" in text
    assert (said in text) if said else ("spun" not in text and "slept" not in text)


def test_nothing_measured_says_so():
    text = printed(build("process idle.py"))
    assert "no data" in text
    assert "nothing lost" in text
    assert "no data: no operator or region was measured" in summarize(build("process idle.py"), "x.leadline")


def test_an_unfinished_run_says_so():
    profile = build("process train.py | pid=1")
    assert "killed or crashed" not in printed(profile)
    profile.meta["complete"] = False
    assert "The program was killed or crashed" in printed(profile)
    assert "killed or crashed" in summarize(profile, "x.leadline").splitlines()[0]


def test_without_a_word_of_the_file_an_unfinished_process_counts():
    profile = build("process train.py | pid=1 complete=0")
    del profile.meta["complete"]
    assert "The program was killed or crashed" in printed(profile)


def test_a_trace_window_is_worth_a_prediction():
    profile = build(
        "python main @ /a/t.py:1\n  operator aten::mm #mm | time=5",
        events="start_ns duration_ns kind node thread\n0 5 operator mm 0",
    )
    assert printed(profile).endswith("\n  leadline whatif run.leadline\n")


def test_focus_says_what_it_left_out():
    text = printed(training(), focus=r"gpt\.py:12")
    assert r"Only paths through /gpt\.py:12/: 84 % of time." in text
    assert "aten::stack" not in text
    assert "nothing matches" in printed(training(), focus="no such frame")


def test_top_cuts_and_counts():
    text = printed(training(), top=2)
    assert "  2 more paths: --top N shows them" in text
    assert "  5 more operators: --top N shows them" in text


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_window(width):
    report = build_report(training(), ReportOptions(), "run.leadline")
    lines = render_text(report, width).splitlines()
    body = [line for line in lines if not line.startswith("  leadline ")]  # commands stay whole, to be copied
    assert max(map(len, body)) <= width
    summary = render_summary(report, width).splitlines()
    assert max(len(line) for line in summary if "  leadline " not in line[8:]) <= width


def test_colour_changes_no_letter():
    report = build_report(training(), ReportOptions(), "run.leadline")
    coloured = render_text(report, 100, colour=True)
    assert "\x1b[1m" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == render_text(report, 100).splitlines()


def test_hostile_names_send_nothing_to_the_terminal():
    text = printed(hostile()) + summarize(hostile(), "x")
    assert not [c for c in text if c != "\n" and not c.isprintable()]
    assert len(text.splitlines()) < 140, "a name with a line break made lines of its own"
    assert "(unnamed)" in text
    assert HOSTILE[0] in text


def test_a_terminal_without_utf8_gets_plain_signs():
    ascii_stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    text = encodable("a › b · 3 µs … 漢", ascii_stream)
    assert text == "a > b - 3 us ~ ?"
    assert encodable("a › b", io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) == "a › b"


def test_the_summary_is_about_fifteen_lines_even_with_many_ranks():
    ranks = "\n".join(
        f"process r{i} | pid={i} rank={i}\n  thread MainThread | tid={i} wall_ns=1000 operator_ns={i} cpu_ns=10\n"
        f"    python main @ /a/t.py:{i}\n      operator aten::op{i} | time=5 call_time=5 peak_live_bytes=5"
        for i in range(1, 17)
    )
    lines = summarize(build(ranks), "x.leadline").splitlines()
    assert len(lines) <= 16
    assert sum(", rank" in line or "(rank" in line for line in lines if line[:6].strip() != "memory") == 2


def test_print_summary_reads_the_file_and_names_it_as_one_would_type_it(tmp_path, monkeypatch):
    write_profile(tmp_path / "run.leadline", training())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # who runs the tests may have set it
    stream = io.StringIO()
    print_summary(str(tmp_path / "run.leadline"), stream)
    head, _, rest = SUMMARY.removeprefix("\n").partition("\n")
    assert stream.getvalue() == f"{head}\n{VERDICT}{rest}"
    with pytest.raises(ProfileFileError):
        print_summary(str(tmp_path / "missing.leadline"), stream)


def test_a_line_that_explains_little_of_a_part_is_not_named_as_its_place():
    def printed_with(time):
        return printed(
            build(f"""
            process p | pid=5
              thread T | tid=5 wall_ns=1000 operator_ns=0 data_ns=600 cpu_ns=700
                python main @ /a/t.py:1
                  phase data loading | time={time}
            """)
        )

    assert "  data loading: t.py:1 main 500 ns" in printed_with(500)
    assert "data loading: t.py:1" not in printed_with(50)


def test_scratch_memory_stands_beside_the_kernels_that_waited_for_it():
    report = build_report(
        build(
            """
            python main @ /home/ada/train.py:3
              kernel spills | gpu_time@0:7=6000/3 scratch_bytes=1280/2 scratch_alloc_bytes@0:7=2097152/2 scratch_time@0:7=900/2 scratch_free_bytes@0:7=1048576/1
              kernel untold | gpu_time@0:7=6000/3 scratch_alloc_bytes@0:7=0/1 scratch_time@0:7=700/1
              kernel plain | gpu_time@0:7=6000/3 scratch_bytes=0/3
            """
        )
    )
    text = render_text(report)
    section = text[text.index("Scratch memory") :].split("\n\n")[0].splitlines()
    assert [line.split() for line in section[2:]] == [
        ["spills", "640", "B", "2", "×", "2.00", "MiB", "1", "×", "900", "ns"],
        ["untold", "0", "B", "1", "×", "-", "0", "×", "700", "ns"],
    ]
    assert "| `spills` | 640 B | 2 × | 2.00 MiB | 1 × | 900 ns |" in render_markdown(report)
    rows = json.loads(render_json(report))["gpu"]["scratch"]
    assert [(row["name"], row["taken_bytes"]) for row in rows] == [("spills", 2 << 20), ("untold", None)]


def test_copies_between_devices_stand_by_their_pair_and_link():
    detail = '{"direction":"PtoP","from":0,"to":1,"link":"xGMI"}'
    profile = build(
        f"""
        process train.py
          thread main
            python main @ /home/ada/train.py:3
              copy Memcpy PtoP (Device 0 -> Device 1, xGMI) | gpu_time@0:7=2000/2 copy_bytes@0:7=64000/2 detail={detail}
            python main @ /home/ada/train.py:4
              copy Memcpy PtoP (Device 0 -> Device 1, xGMI) | gpu_time@0:7=2000/2 copy_bytes@0:7=64000/2 detail={detail}
              copy Memcpy PtoP (Device -> Device) | gpu_time@0:7=2000/2 copy_bytes@0:7=64000/2
        """
    )
    profile.devices[0].detail["links"] = [{"device": 1, "type": "xGMI", "mb_per_s": 64_000}]
    report = build_report(profile)
    text = render_text(report)
    section = text[text.index("Between devices") :].split("\n\n")[0].splitlines()
    assert [line.split() for line in section[2:]] == [
        ["0", "→", "1", "xGMI", "4", "125", "KiB", "4.00", "µs", "32.0", "50", "%"]
    ]
    assert "| 0 → 1 | xGMI | 4 | 125 KiB | 4.00 µs | 32.0 | 50 % |" in render_markdown(report)
    (row,) = json.loads(render_json(report))["gpu"]["links"]
    assert (row["bytes"], row["link_bytes_s"]) == (128_000, 64e9)
