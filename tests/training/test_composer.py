"""The callback in composer's real Trainer, where it is installed: its releases need an older torch than the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.training.test_frameworks import on_two_ranks

import leadline

torch = pytest.importorskip("torch", reason="composer trains torch models")


def test_composer_counts_batches_over_epochs_also_after_a_resume(tmp_path: Path) -> None:
    composer = pytest.importorskip("composer", reason="composer is not installed: its releases need an older torch")
    from leadline.training import ComposerCallback

    class Model(composer.ComposerModel):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, batch):
            return self.layer(batch[0])

        def loss(self, outputs, batch):
            return (outputs - batch[1]).pow(2).mean()

        def eval_forward(self, batch, outputs=None):
            return self.forward(batch)

        def get_metrics(self, is_train):
            return {}

    data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=4)

    def train(name: str, load: str | None = None) -> tuple[tuple[int, ...], int]:
        model = Model()
        callback = ComposerCallback(enable=True, trace_dir=str(tmp_path / name), start_step=2, end_step=5)
        trainer = composer.Trainer(
            model=model, train_dataloader=loader, eval_dataloader=loader, eval_interval="2ba", max_duration="8ba",
            callbacks=[callback], optimizers=torch.optim.AdamW(model.parameters()), progress_bar=False,
            save_folder=str(tmp_path / "kept"), save_interval="3ba", save_overwrite=True, load_path=load, device="cpu",
        )  # fmt: skip
        trainer.fit()
        trainer.close()
        (path,) = (tmp_path / name).glob("*.leadline")
        return leadline.open(str(path)).window.steps, json.loads(path.with_suffix(".json").read_text())["steps"]

    assert train("first") == ((2, 3, 4), 8)
    (kept,) = (tmp_path / "kept").glob("*-ba3-*")
    assert train("resumed", str(kept)) == ((3, 4), 5)


@pytest.mark.slow
def test_two_ranks_of_composer_record_the_same_steps(tmp_path: Path) -> None:
    pytest.importorskip("composer", reason="composer is not installed: its releases need an older torch")
    on_two_ranks("composer", tmp_path)
