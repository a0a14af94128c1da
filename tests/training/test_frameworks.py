"""Callbacks with the real packages: step numbers are the framework's own, also with accumulation, evaluation, resume."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests.training import loops

import leadline
from leadline import training

torch = pytest.importorskip("torch", reason="the frameworks train torch models")


class Data(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int):
        torch.manual_seed(index)
        return {"x": torch.randn(4), "labels": torch.randn(1)}


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels=None):
        out = self.layer(x)
        return {"loss": (out - labels).pow(2).mean(), "logits": out}


def window(folder: Path) -> list[int]:
    (path,) = folder.glob("*.leadline")
    profile = leadline.open(str(path))
    facts = json.loads(path.with_suffix(".json").read_text())
    assert list(profile.window.steps) == facts["recorded_steps"]
    return list(profile.window.steps)


def train_with_transformers(folder: Path, callbacks, *, resume: bool = False, steps: int = 6) -> list[float]:
    transformers = loops.transformers("its Trainer is tested")
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"), max_steps=steps, per_device_train_batch_size=2, gradient_accumulation_steps=2,
        eval_strategy="steps", eval_steps=2, save_steps=3, logging_steps=1, report_to=[], disable_tqdm=True,
        use_cpu=True, dataloader_pin_memory=False, save_strategy="steps",
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=Model(), args=arguments, train_dataset=Data(), eval_dataset=Data(), callbacks=callbacks
    )
    trainer.train(resume_from_checkpoint=str(folder / "out" / "checkpoint-3") if resume else None)
    return [float(entry["loss"]).hex() for entry in trainer.state.log_history if "loss" in entry]


def test_transformers_counts_optimizer_steps_also_after_a_resume(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="its Trainer is tested")
    callback = training.HFTrainerCallback(enable=True, trace_dir=str(tmp_path / "a"), start_step=2, end_step=5)
    losses = train_with_transformers(tmp_path, [callback])
    assert window(tmp_path / "a") == [2, 3, 4]
    resumed = training.HFTrainerCallback(enable=True, trace_dir=str(tmp_path / "b"), start_step=2, end_step=5)
    train_with_transformers(tmp_path, [resumed], resume=True)
    assert window(tmp_path / "b") == [3, 4]
    assert losses == train_with_transformers(tmp_path / "plain", []), "a profile must not change the loss"


def test_a_trainer_leaves_a_file_for_every_stretch_of_its_run(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="its Trainer is tested")
    callback = training.HFTrainerCallback(
        enable=True, trace_dir=str(tmp_path / "a"), start_step=2, end_step=4, roll_minutes=1e-6, budget=0
    )  # every step is longer than that
    losses = train_with_transformers(tmp_path, [callback])
    files = {}
    for side in (tmp_path / "a").glob("*.json"):
        facts = json.loads(side.read_text())
        assert facts["complete"]
        files[facts["first_step"]] = (facts, leadline.open(str(side.with_suffix(".leadline"))))
    assert sorted(files) == [0, 1, 2, 3, 4, 5]
    assert [files[step][0]["steps"] for step in sorted(files)] == [1] * 6
    assert [files[step][1].window.steps for step in sorted(files)] == [(), (), (2,), (3,), (), ()]
    names = {}
    for step, (_, profile) in files.items():
        linear = sum(node.exclusive("call_time").count for node in profile.tree.find(name="aten::linear"))
        assert linear == 2 + (2 if step in (2, 4) else 0), step  # two batches of evaluation lie before these
        names[step] = {node.name for node in profile.tree.find(kind="module")}
    assert names[0] and all(names[step] == names[0] for step in names), "names outlive a file"
    assert losses == train_with_transformers(tmp_path / "plain", [])


def test_lightning_counts_optimizer_steps_not_batches(tmp_path: Path) -> None:
    warnings.simplefilter("ignore")
    lightning = pytest.importorskip("lightning.pytorch", reason="its Trainer is tested")

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def training_step(self, batch, index):
            return self.model(**batch)["loss"]

        def validation_step(self, batch, index):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    callback = training.LightningCallback(enable=True, trace_dir=str(tmp_path / "a"), start_step=1, end_step=4)
    loader = torch.utils.data.DataLoader(Data(), batch_size=2)
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=2, accumulate_grad_batches=2, callbacks=[callback], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(Module(), loader, loader)
    assert trainer.global_step == 8
    assert window(tmp_path / "a") == [1, 2, 3]


def test_ignite_iterations_make_steps(tmp_path: Path) -> None:
    engine = pytest.importorskip("ignite.engine", reason="its Engine is tested")
    handler = training.IgniteHandler(
        enable=True, trace_dir=str(tmp_path), start_step=2, end_step=4, accumulation=2, rank=0
    )
    trainer = handler.attach(engine.Engine(lambda engine, batch: batch))
    trainer.run(range(6), max_epochs=2)
    assert window(tmp_path) == [2, 3]


def test_an_error_in_ignite_stays_an_error(tmp_path: Path) -> None:
    engine = pytest.importorskip("ignite.engine", reason="its Engine is tested")

    def fail(engine, batch):
        if batch == 3:
            raise KeyError("batch")

    handler = training.IgniteHandler(enable=True, trace_dir=str(tmp_path), start_step=1, end_step=9, rank=0)
    with pytest.raises(KeyError):
        handler.attach(engine.Engine(fail)).run(range(6))
    assert window(tmp_path) == [1, 2]


def test_accelerate_counts_steps_of_the_prepared_optimizer(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate", reason="it is tested")
    accelerator = accelerate.Accelerator(gradient_accumulation_steps=2, cpu=True)
    model = Model()
    loader = torch.utils.data.DataLoader(Data(), batch_size=2)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01), loader)
    with training.AccelerateTracker(
        accelerator, optimizer, next_step=100, enable=True, trace_dir=str(tmp_path), start_step=101, end_step=103
    ):
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch)["loss"])
                optimizer.step()
                optimizer.zero_grad()
    assert window(tmp_path) == [101, 102]


class Titan:
    """The fields of torchtitan's profiling section."""

    enable_profiling = True
    save_traces_folder = "profile_trace"
    profile_freq = 10
    profiler_active = 2
    profiler_warmup = 3


@pytest.mark.parametrize(("resumed_at", "expected"), [(0, [9, 10, 19, 20]), (9, [10, 19, 20]), (20, [])])
def test_a_loop_like_torchtitans(resumed_at: int, expected: list[int], tmp_path: Path) -> None:
    with training.maybe_enable_profiling(
        Titan(), global_step=resumed_at, base_folder=str(tmp_path), rank=0
    ) as profiler:
        step = resumed_at
        while step < 25:
            step += 1
            if profiler:
                profiler.step()
    assert window(tmp_path / "profile_trace") == expected
    torch_schedule = torch.profiler.schedule(wait=5, warmup=3, active=2)
    recorded = [index + 1 for index in range(resumed_at, 25) if "RECORD" in torch_schedule(index).name]
    assert expected == recorded, "as torch's own schedule, whose index 0 is step 1"


def test_a_disabled_loop_like_torchtitans(tmp_path: Path) -> None:
    section = Titan()
    section.enable_profiling = False

    class Config:
        profiling = section

    with training.maybe_enable_profiling(Config(), base_folder=str(tmp_path)) as profiler:
        assert profiler is None
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["transformers", "lightning", "accelerate", "ignite"])
def test_two_ranks_record_the_same_steps(framework: str, tmp_path: Path) -> None:
    pytest.importorskip(
        {"ignite": "ignite.engine", "lightning": "lightning.pytorch"}.get(framework, framework), reason="it is tested"
    )
    on_two_ranks(framework, tmp_path)


def on_two_ranks(framework: str, tmp_path: Path) -> None:
    """The same steps are recorded by two processes under torchrun."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    program = Path(__file__).parent / "two_ranks.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program)]
    done = subprocess.run(
        [*command, framework, str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for rank in (0, 1):
        (path,) = (tmp_path / "profiles").glob(f"*_rank{rank}_*.leadline")
        assert leadline.open(str(path)).window.steps == (1, 2)
        facts = json.loads(path.with_suffix(".json").read_text())
        assert (facts["rank"], facts["world_size"], facts["complete"]) == (rank, 2, True)
