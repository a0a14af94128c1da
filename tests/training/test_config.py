"""What may be written as a configuration, and the sentence for what may not."""

import dataclasses
import re
import time
from pathlib import Path

import pytest

import leadline
from leadline import ProfileError
from leadline.capture.training.config import TrainingConfig, read_config
from leadline.training import build_profiler

ROOT = Path(__file__).resolve().parents[2]
TABLE = "enable = true\nstart_step = 7\nend_step = 9\nranks = [0, 8]\n"


@pytest.mark.parametrize("section", ["[tool.leadline.training]", "[profiling]"])
def test_toml(tmp_path: Path, section: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(f"[model]\ndim = 4\n{section}\n{TABLE}")
    config = read_config(path)
    assert (config.enable, config.start_step, config.end_step, config.ranks) == (True, 7, 9, "0,8")


def test_pyproject_of_the_working_directory(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_config() == TrainingConfig()
    (tmp_path / "pyproject.toml").write_text(f"[tool.leadline.training]\n{TABLE}")
    assert read_config().end_step == 9
    assert build_profiler(rank=1) is None, "rank 1 is not among 0 and 8"


def test_mappings_dataclasses_and_sections_of_them() -> None:
    @dataclasses.dataclass
    class Profiling:
        enable: bool = True
        start_step: int = 2
        end_step: int = 4

    @dataclasses.dataclass
    class Job:
        lr: float = 0.1
        profiling: Profiling = dataclasses.field(default_factory=Profiling)

    for source in (Profiling(), Job(), {"enable": True, "start_step": 2, "end_step": 4}, {"profiling": Profiling()}):
        assert (read_config(source).enable, read_config(source).end_step) == (True, 4)


def test_keywords_win_over_the_environment_and_that_over_the_file(monkeypatch) -> None:
    monkeypatch.setenv("LEADLINE_TRAINING_END_STEP", "20")
    monkeypatch.setenv("LEADLINE_TRAINING_ENABLE", "1")
    assert read_config({"start_step": 2, "end_step": 4}).end_step == 20
    assert read_config({"start_step": 2, "end_step": 4}, end_step=30).end_step == 30
    assert read_config({"start_step": 2}).enable


def test_the_settings_of_the_kubernetes_example_are_known(monkeypatch) -> None:
    manifest = (ROOT / "examples" / "launchers" / "kubernetes_job.yaml").read_text(encoding="utf-8")
    found = re.findall(r"name: (LEADLINE_\w+)\n +value: (.+?)(?: #.*)?\n", manifest)
    assert len(found) == manifest.count("name: LEADLINE_") == 5
    for name, value in found:
        monkeypatch.setenv(name, value.strip('"'))
    config = read_config()
    assert (config.enable, config.trace_dir, config.on_demand) == (True, "/profiles/run-1", "file")
    assert (config.roll_minutes, config.max_files) == (10, 12)


def test_without_a_window_steps_5_to_7() -> None:
    assert (TrainingConfig().start_step, TrainingConfig().end_step) == (5, 8)


@pytest.mark.parametrize(("native", "kinds"), [(False, {"python"}), (True, {"python", "native"})])
def test_cpu_samples_with_native_frames_where_the_config_asks_for_them(tmp_path: Path, native, kinds) -> None:
    profiler = build_profiler(enable=True, trace_dir=str(tmp_path), cpu_sample=500.0, native=native, rank=0)
    profiler.start(0)
    began = time.thread_time()
    while time.thread_time() - began < 0.3:
        sorted(str(number) for number in range(20_000))
    profiler.step(0)
    tree = leadline.open(str(profiler.stop())).tree
    sampled = [row for row in range(len(tree)) if tree.exclusive("cpu_sample").count[row]]
    assert sampled
    assert kinds <= {node.kind for row in sampled for node in tree.node(row).path()}
    # what a sample meets of our own stands in one frame, whatever was asked
    assert native == any(node.kind == "native" and node.name != "[Leadline]" for node in tree.walk())


def test_a_rate_that_nobody_can_take_costs_the_profile_and_a_sentence(tmp_path: Path, capfd) -> None:
    profiler = build_profiler(enable=True, trace_dir=str(tmp_path), cpu_sample=1e9, rank=0)
    profiler.start(0)
    profiler.step(0)
    assert profiler.stop() is None
    assert "The CPU sampling rate cannot be" in capfd.readouterr().err


def test_disabled_is_none_and_touches_nothing(tmp_path: Path) -> None:
    assert build_profiler({"enable": False, "trace_dir": str(tmp_path / "x")}, rank=0) is None
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"start_step": 8, "end_step": 5}, "end_step (5) must be greater than start_step (8)"),
        ({"start_step": 5, "end_step": 5}, "end_step (5) must be greater than start_step (5)"),
        ({"start_step": -1, "end_step": 5}, "counted from 0"),
        ({"start_step": 5}, "needs end_step"),
        ({"start_stpe": 5}, "did you mean start_step?"),
        ({"endstep": 5}, "did you mean end_step?"),
        ({"zzz": 5}, "the keys are enable, start_step"),
        ({"start_step": 1, "end_step": 2, "active": 2}, "not both"),
        ({"wait": 3}, "wait needs active"),
        ({"start_step": 1, "end_step": 2, "repeat": 2}, "repeat belongs to wait"),
        ({"active": 0}, "active cannot be 0"),
        ({"active": 1, "wait": -1}, "wait cannot be -1"),
        ({"start_step": "5", "end_step": 8}, "start_step must be a whole number, not '5'"),
        ({"enable": "yes"}, "enable must be true or false"),
        ({"ranks": "first"}, "Cannot read ranks 'first'"),
        ({"on_demand": "telepathy"}, "write signal, file, http or store"),
        ({"stack": False}, "every measurement belongs to a call path"),
        ({"accumulation": 0}, "accumulation cannot be 0"),
        ({"trace_dir": ""}, "trace_dir is empty"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(values, words) -> None:
    with pytest.raises(ProfileError) as error:
        read_config(values)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[model]\n", "has no section"),
        ("[profiling\n", "Cannot read"),
        ("profiling = 3\n", "must be a table"),
        ("tool = 3\n", "has no section"),
        ("[tool]\nleadline = 'x'\n", "has no section"),
        ("[tool.leadline]\ntraining = 'x'\n", "must be a table"),
    ],
)
def test_toml_that_says_nothing(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(ProfileError, match=words):
        read_config(path)
    with pytest.raises(ProfileError, match="No such file"):
        read_config(tmp_path / "absent.toml")
