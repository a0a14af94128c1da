"""Real profiles in a real browser: from the server of `leadline view`, and as one file."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.distributed.test_alone import write as write_late

import leadline
from leadline._view_server import ViewServer
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.writer import write_profile
from leadline.report.view import View


@pytest.fixture(scope="module")
def tour(profiles, browse):
    """What a person sees of two profiles that the server hands out."""
    _, before, after = profiles
    server = ViewServer(View([(str(path), leadline.open(path)) for path in (before, after)]))
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        return browse("tour.mjs", server.address)
    finally:
        server.close()


def test_nothing_went_wrong_and_nothing_left_the_machine(tour):
    assert tour["seen"]["errors"] == []
    assert tour["seen"]["dialogs"] == []
    assert {url.split("/")[2].split(":")[0] for url in tour["seen"]["requests"] if not url.startswith("blob:")} == {
        "127.0.0.1"
    }


def test_search_zoom_callers(tour):
    assert tour["zoomed"] >= 2
    assert tour["minimap"]
    assert " in " in tour["found"]
    assert tour["selected"].startswith("operator\naten::")
    assert "Callers" in tour["sandwich"]
    assert tour["badPattern"].startswith("not a regular expression")


def test_a_frame_is_dropped_and_the_picture_saved(tour):
    assert tour["svg"] == "<svg"
    (chip,) = tour["dropped"]["chips"]
    assert "left out" in chip
    assert "transform=drop+" in tour["dropped"]["address"]


def test_a_line_leads_to_its_source_and_back(tour):
    assert tour["lines"][0].startswith("train.py:")
    assert len(tour["source"]["marked"]) == 1
    assert "What ran on this line" in tour["source"]["panel"]
    assert "aten::" in tour["source"]["panel"]
    assert " in " in tour["fromSource"]


def test_timeline(tour):
    assert tour["window"].startswith("The whole window")
    assert "steps" in tour["window"]
    assert "selected" in tour["range"].split("\n")[0]
    assert tour["saved"] == "leadline-trace.json"


def test_keys_and_clicks_select_events(tour):
    assert "duration" in tour["firstEvent"]
    assert "duration" in tour["event"]
    assert tour["event"] != tour["firstEvent"]
    assert tour["letGo"].startswith("The whole window")
    assert tour["clickedEvent"] == tour["event"]
    assert "selected" in tour["rangeByKeys"].split("\n")[0]


def test_predictions_stand_below_what_was_measured_one_or_several(tour):
    assert len(tour["first"]) == 1, "the best advice"
    assert tour["scenarios"][0] == "and what if …"
    assert any(text.startswith("faster cpu 2x") for text in [*tour["first"], *tour["scenarios"]])
    assert len(tour["beside"]) == 2
    assert tour["first"][0] in tour["beside"]
    for text in (tour["predicted"], tour["predictedToo"]):
        assert text.startswith("predicted\n")
        assert "duration" in text
    assert tour["without"][0] == "What if …"
    assert len(tour["without"]) == len(tour["scenarios"]) + 1


def test_the_page_of_a_timeline_holds_the_predictions_that_were_asked_for(profiles, browse):
    folder, before, _ = profiles
    command = [sys.executable, "-m", "leadline.cli.main", "timeline", before.name, "--html", "-o", "whatif.html"]
    asked = ["--whatif", "faster cpu 2x", "--whatif", "batch_size 2x"]
    subprocess.run([*command, *asked], cwd=folder, check=True, capture_output=True, timeout=100)
    seen = browse("timeline.mjs", folder / "whatif.html")
    assert seen["errors"] == []
    assert seen["predictions"] == ["faster cpu 2x ×", "batch_size 2x ×"]
    wrong = subprocess.run(
        [*command, "--whatif", "warp"], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert wrong.returncode == 2
    assert "There is no prediction called warp. There are: " in wrong.stderr
    assert "faster cpu 2x" in wrong.stderr


def test_counters_share_the_axis(tour):
    assert tour["withCounters"] > tour["withoutCounters"] + 80
    assert tour["counter"].startswith("Live tensor memory")
    assert " at " in tour["counter"].split("\n")[0]


def test_search_notes_and_place_of_the_timeline_are_in_the_address(tour):
    assert "addmm" in tour["searchedEvent"]
    assert " found, " in tour["foundEvents"]
    assert tour["reopened"] == {"note": "too slow", "search": "addmm", "address": tour["address"]}


def test_comparison(tour):
    assert "6 and 6 steps" in tour["diff"]
    assert "What changed" in tour["diff"]
    assert "before" in tour["diffSelected"]


def test_a_phone_and_a_large_font(tour):
    assert not tour["wideOnPhone"]
    assert not tour["wideAt200"]


def test_the_report_as_one_file_shows_the_same(profiles, browse):
    folder, before, _ = profiles
    command = [sys.executable, "-m", "leadline.cli.main", "report", before.name, "-o", "page.html"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=100)
    seen = browse("tour.mjs", folder / "page.html")
    assert seen["seen"]["errors"] == []
    assert len({url.split("#")[0] for url in seen["seen"]["requests"] if not url.startswith("blob:")}) == 1
    assert seen["source"]["marked"] != []


def test_no_source_leaves_the_text_out(profiles):
    folder, before, _ = profiles
    command = [sys.executable, "-m", "leadline.cli.main", "report", before.name, "--no-source", "--format", "html"]
    page = subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=100).stdout.decode()
    assert "def train_step" not in page


@pytest.mark.slow
def test_axe_finds_no_violation(profiles, browse):
    folder, before, _ = profiles
    command = [sys.executable, "-m", "leadline.cli.main", "report", before.name, "-o", "axe.html"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=100)
    assert browse("axe.mjs", folder / "axe.html") == []


PROBLEM = Path(__file__).parents[2] / "examples" / "problems" / "growing_cat" / "problem.py"


def test_a_finding_leads_to_its_line_and_to_its_path_and_the_tree_is_turned_over(profiles, browse):
    folder, *_ = profiles
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "-o", "problem.leadline", str(PROBLEM)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=200)
    server = ViewServer(View([(str(folder / "problem.leadline"), leadline.open(folder / "problem.leadline"))]))
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        seen = browse("finding.mjs", server.address)
    finally:
        server.close()
    assert seen["errors"] == []
    assert "redundant_work" in seen["finding"]
    assert "# problem" in seen["line"]
    assert "What ran on this line" in seen["beside"]
    assert "copies a tensor that grows" in seen["beside"]
    assert seen["frame"].startswith("aten::cat")
    assert "copies a tensor that grows" in seen["badge"]
    assert "Bottom-up" in seen["pressed"]
    assert "Called from" in seen["bottomUp"]
    assert seen["again"] == {"pressed": seen["pressed"], "search": "aten::", "colour": "module"}


def test_a_folded_job_has_the_tree_of_its_late_rank_and_says_why_it_has_no_timeline(tmp_path, browse):
    """Rank 5 of eight loads 900 ms longer; the others wait for it in their collectives."""
    paths = write_late(tmp_path, {5: 900})
    leadline_is = [sys.executable, "-m", "leadline.cli.main"]
    for words in (["merge", "-o", "folded.leadline", *paths], ["report", "folded.leadline", "-o", "folded.html"]):
        subprocess.run([*leadline_is, *words], cwd=tmp_path, check=True, capture_output=True, timeout=100)
    seen = browse("folded.mjs", tmp_path / "folded.html")
    assert seen["errors"] == []
    assert "A folded job holds no trace window, so it says where time went but not when." in seen["timeline"]
    assert "Open the file of one of its ranks to see one." in seen["timeline"]
    assert seen["offered"] == ["all ranks", "rank 5 alone"]
    assert seen["alone"] == "2.45 s time" and seen["all"] == "19.6 s time"
    assert seen["colour"] == "ranks" and "the 7 other ranks" in seen["legend"]
    assert "time\t950 ms\t50.0 ms" in seen["beside"]
    assert seen["found"] == "39 % in 1 place"
    assert "rank=5" in seen["link"] and seen["again"] == ["data loading", "5"]
    assert seen["notAlone"] == "true" and "rank 5, node1" in seen["said"] and "its own tree" in seen["said"]
    assert seen["chosen"][:2] == [seen["alone"], "5"]


def test_scratch_memory_and_links_between_devices_are_on_the_overview(tmp_path, browse):
    profile = build(
        """
        python main @ /home/ada/train.py:3
          kernel spills | gpu_time@0:7=6000/3 scratch_bytes=1280/2 scratch_alloc_bytes@0:7=2097152/2 scratch_time@0:7=900/2
          copy Memcpy PtoP (Device 0 -> Device 1, xGMI) | gpu_time@0:7=2000/2 copy_bytes@0:7=64000/2 detail={"from":0,"to":1,"link":"xGMI"}
        """
    )
    write_profile(tmp_path / "devices.leadline", profile)
    command = [sys.executable, "-m", "leadline.cli.main", "report", "devices.leadline", "-o", "devices.html"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    seen = browse("overview.mjs", tmp_path / "devices.html")
    assert seen["errors"] == []
    assert "spills\t640 B\t2 ×\t2.00 MiB\t0 ×\t900 ns" in seen["text"]
    assert "0 → 1\txGMI\t2\t62.5 KiB\t2.00 µs\t32.0\t-" in seen["text"]


def test_what_a_compiled_program_holds_inside_is_in_the_table_of_memory(tmp_path, browse):
    held = {"at_peak": True, "largest": [["tanh.1", 1 << 20], ["gone.2", 1 << 18]]}
    planned = {"arguments": 4096, "results": 8192, "temporaries": 5 << 18}
    detail = json.dumps({"planned_bytes": planned, "temporaries": held}).replace(" ", "")
    profile = build(
        f"""
        python main @ /home/ada/train.py:3
          operator jit(step) | call_time=90/1 detail={detail}
            python layer @ /home/ada/train.py:10
              operator tanh | time=80/1 detail={json.dumps({"hlo": "tanh.1"}).replace(" ", "")}
        """
    )
    write_profile(tmp_path / "programs.leadline", profile)
    command = [sys.executable, "-m", "leadline.cli.main", "report", "programs.leadline", "-o", "programs.html"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    seen = browse("memory.mjs", tmp_path / "programs.html")
    assert seen["errors"] == []
    [card] = seen["cards"]
    assert "Inside jit(step): 1.25 MiB" in card and "called at train.py:3" in card
    assert "4.00 KiB of arguments and 8.00 KiB of results beside it" in card
    assert "80 %" in card and "train.py:10 layer" in card and "20 %" in card and "gone" in card
    assert "tanh" in seen["frame"]


@pytest.mark.parametrize(
    ("name", "detail", "words"),
    [
        (
            "AMD Instinct MI300X",
            {"vendor": "AMD", "wavefront": 64},
            {
                "compute units at work": "as the mean over all of them",
                "occupancy": "room for wavefronts that was taken on compute units at work",
                "bank conflicts": "of the passes that LDS took",
                "pieces of a load": "of 32 bytes that a load of 64 threads touched; 8 where neighbours read 4 bytes each",
                "warp instructions": "instructions that wavefronts executed in counted_time",
            },
        ),
        (
            "NVIDIA H100",
            {"compute_capability": "9.0"},
            {
                "multiprocessors at work": "as the mean over all of them",
                "occupancy": "room for warps that was taken on multiprocessors at work",
                "bank conflicts": "of the passes that shared memory took",
                "pieces of a load": "of 32 bytes that a load of 32 threads touched; 4 where neighbours read 4 bytes each",
                "warp instructions": "instructions that warps executed in counted_time",
            },
        ),
    ],
)
def test_hardware_counters_are_told_in_the_words_of_the_devices_maker(tmp_path, browse, name, detail, words):
    builder = ProfileBuilder()
    process = builder.process("train.py")
    device = builder.device(process, 0, name, detail=json.dumps(detail))
    line = builder.child(builder.node_of_thread(builder.thread(process, "MainThread")), builder.frame("python", "main"))
    kernel = builder.child(line, builder.frame("kernel", "gemm"))
    counted = {"gpu_time": 900, "counted_time": 800, "active_time": 400, "occupied_time": 200, "warp_instructions": 70}
    for metric, value in {
        **counted, "shared_wavefronts": 8, "bank_conflicts": 2, "global_requests": 5, "global_sectors": 20
    }.items():  # fmt: skip
        builder.add(kernel, metric, value, device, 7)
    write_profile(tmp_path / "counted.leadline", builder.profile())
    command = [sys.executable, "-m", "leadline.cli.main", "report", "counted.leadline", "-o", "counted.html"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    seen = browse("words.mjs", tmp_path / "counted.html", "gemm")
    assert seen["errors"] == []
    assert {label: seen["titles"].get(label) for label in words} == words
    assert "active time" in seen["panel"] and words["warp instructions"] in seen["meanings"]
    others = "for wavefronts", "compute unit", "LDS"
    if detail.get("vendor") == "AMD":
        others = "warps", "multiprocessor", "hared memory"
    assert not [word for word in others for text in (*seen["titles"].values(), seen["meanings"]) if word in text]
