"""A small model on two ranks of a real framework: `two_ranks.py FRAMEWORK FOLDER`, under torchrun."""

import sys
import warnings
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from leadline import training

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.training.test_frameworks import Data, Model

warnings.simplefilter("ignore")
framework, folder = sys.argv[1], Path(sys.argv[2])
asked = {"enable": True, "trace_dir": str(folder / "profiles"), "start_step": 1, "end_step": 3}


def with_transformers() -> None:
    import transformers

    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"), max_steps=4, per_device_train_batch_size=2, report_to=[], disable_tqdm=True,
        use_cpu=True, dataloader_pin_memory=False, save_strategy="no", ddp_backend="gloo",
    )  # fmt: skip
    callback = training.HFTrainerCallback(**asked)
    transformers.Trainer(model=Model(), args=arguments, train_dataset=Data(), callbacks=[callback]).train()


def with_lightning() -> None:
    import lightning.pytorch as lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def training_step(self, batch, index):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_steps=4, callbacks=[training.LightningCallback(**asked)],
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=folder,
    )  # fmt: skip
    trainer.fit(Module(), DataLoader(Data(), batch_size=2))


def with_accelerate() -> None:
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True)
    model = Model()
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), lr=0.01), DataLoader(Data(), batch_size=2)
    )
    with training.AccelerateTracker(accelerator, optimizer, **asked):
        for batch in loader:
            accelerator.backward(model(**batch)["loss"])
            optimizer.step()
            optimizer.zero_grad()


def with_ignite() -> None:
    import ignite.distributed as idist
    from ignite.engine import Engine

    def trained(local_rank: int) -> None:
        model = idist.auto_model(Model())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def update(engine, batch):
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            optimizer.step()

        training.IgniteHandler(**asked).attach(Engine(update)).run(DataLoader(Data(), batch_size=4), max_epochs=1)

    with idist.Parallel(backend="gloo") as parallel:
        parallel.run(trained)


def with_composer() -> None:
    import composer

    class Batch(composer.ComposerModel):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def forward(self, batch):
            return self.model(**batch)

        def loss(self, outputs, batch):
            return outputs["loss"]

    model = Batch()
    trainer = composer.Trainer(
        model=model, train_dataloader=DataLoader(Data(), batch_size=2, sampler=composer.utils.dist.get_sampler(Data())),
        max_duration="4ba", callbacks=[training.ComposerCallback(**asked)], progress_bar=False, device="cpu",
        optimizers=torch.optim.AdamW(model.parameters()),
    )  # fmt: skip
    trainer.fit()
    trainer.close()


FRAMEWORKS = {
    "transformers": with_transformers,
    "lightning": with_lightning,
    "accelerate": with_accelerate,
    "ignite": with_ignite,
    "composer": with_composer,
}
FRAMEWORKS[framework]()
