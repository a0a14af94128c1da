"""No text of the input that is not on a list stands anywhere in what `leadline redact` writes."""

from __future__ import annotations

import itertools
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import leadline
from leadline.cli.main import main
from leadline.profiles import write_profile
from leadline.profiles.build import build
from leadline.report import redact
from leadline.report.redact import PARTS, redacted

OWN = "zqxsecret"
"""A word that no list has."""
PREFIXES = (
    "{}", "aten::{}", "torch::{}", "prim::{}", "Optimizer.step#{}.step", "{}Backward0", "ProfilerStep#{}", "nccl:{}", "inductor::{}",
    "flash_{}_fwd", "gemm_{}", "triton_poi_fused_{}_0", "triton_red_fused_add_{}", "sm90_{}_f16", "void at::native::{}<int>", "cutlass_{}",
    "cuda{}", "Memcpy {}", "MainThread{}", "pt_autograd_0{}", "Linear{}", "{}.Linear", "forward {}", "ncclDevKernel_{}", "Cijk_{}",
    "autograd::engine::evaluate_function: {}Backward0", "Thread-1\n{}", "main {}", "imported.{}", "machine.{}.12",
    "Module.{}", "{}.forward", "make_dataclass.<locals>.{}.__init__", "forward.<locals>.<lambda>.{}", "forward_{}", "<lambda {}>",
    "at::native::{}_kernel", "PyEval_{}",
)  # fmt: skip
FILES = (
    "/home/{}/train.py", "/srv/{}.py", "/usr/lib/python3.11/{}.py", "/venv/lib/python3.11/site-packages/{}/layers.py",
    "C:\\{}\\train.py", "/opt/lib{}.so", "<{}>", "<frozen {}>", "train.{}", "/x/site-packages/{}.py", "relative/{}/a.py",
    "/x/site-packages/torch/nn/modules/module.py", "/x/site-packages/torch/{}.py", "/x/site-packages/torch/nn/{}/module.py",
    "/x/site-packages/datasets/{}/loader.py", "/x/site-packages/transformers/models/{}/modeling_{}.py", "<frozen importlib {}>",
    "/usr/lib/python3.11/asyncio/events.py", "/usr/lib/python3.11/asyncio/{}.py", "<frozen importlib._bootstrap_{}>", "<frozen os>",
    "/x/site-packages/torch/_C.cpython-{}.so", "/x/site-packages/torch/lib/libtorch_cpu.so", "/x/libtorch_{}.so", "/x/libgomp{}.so.1",
    "/x/libmkl_{}.so.2", "/x/ld-linux-{}.so.2", "/x/libpython3.11.so.1.0", "/x/libc10_{}.so", "/x/site-packages/numpy/{}",
)  # fmt: skip
KINDS = ("operator", "region", "kernel", "api", "copy", "collective", "phase", "module", "native", "python")


def contents(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return b"\n".join([*(archive.read(name) for name in archive.namelist()), *map(str.encode, archive.namelist())])


def of(values: Any, own: str) -> Any:
    """A meta.json in which every text, also of keys that nobody knows, is one's own."""
    if isinstance(values, dict):
        told = {key: value if key in ("format", "pid") else of(value, own) for key, value in values.items()}
        return {**told, own: own, "more": [own, {own: own}]}
    if isinstance(values, list):
        return [*(of(one, own) for one in values), own]
    return own if isinstance(values, str) else values


META = {
    "program": {"argv": ["train.py"], "cwd": "/", "python": "3", "implementation": "x"},
    "host": {"hostname": "h", "machine": "x", "cpus": 2, "system": "s"},
    "asked": {"shapes": True, "native": "yes", "accelerators": ["a"]},
    "available": {"torch": {"ok": True, "version": "2", "role": "x", "message": "m"}},
    "cost": {"callbacks_ns": 5, "text": "t"},
    "clock": {"source": "tsc"},
    "exit": {"signal": "SIGTERM"},
    "findings": {"title": "t"},
    "fold": {"job": "j", "order": ["o"], "by": "b"},
}
RECORD = {
    "pid": 7, "hostname": "h", "identity": "i.x", "parent_identity": "i.x", "program": {"argv": ["a"]}, "sources": {"a": "b"},
    "launch": {"job": "j", "launcher": "l", "world_size": 2}, "available": {"a": {"ok": True}}, "cost": {"t": "t"}, "clock": {"c": "c"},
    "environment": {"KEY": "value"}, "forked_from": "x", "engines": [{"engine": "vllm", "ended": {"stop": 1}, "slowest": [{"id": "r"}]}],
}  # fmt: skip


def drawn(names: dict[str, str], file: str, own: str) -> Any:
    clean = {
        kind: name.replace("\n", " ").replace("@", "a").replace("|", "i").replace("#", "# ")
        for kind, name in names.items()
    }
    lines = ["process PROGRAM | pid=7", "  thread THREAD | tid=7 wall_ns=1000"]
    lines += [f"    {kind} {kind.upper()}N" + (f" | detail={json.dumps({'type': own, own: own, 'thread': own}, separators=(',', ':'))}" if kind != "module" else "")
              for kind in KINDS]  # fmt: skip
    profile = build("\n".join(lines), losses=[("provider_unavailable", 1, own)])
    strings = [clean.get(text.removesuffix("N").lower(), own if text in ("PROGRAM", "THREAD") else text) if text else text
               for text in profile.tables.strings]  # fmt: skip
    from leadline.profiles.profile import Profile
    from leadline.profiles.tables import StringBuilder, Tables

    builder = StringBuilder()
    at = [builder.add(text) for text in strings]
    columns = {name: dict(profile.tables[name]) for name in profile.tables.columns if name != "strings"}
    from leadline.schema import TABLES

    for name, table in TABLES.items():
        for column in table.columns:
            if column.ref == "strings" and name in columns:
                old = columns[name][column.name]
                columns[name][column.name] = old.copy()
                columns[name][column.name][:] = [at[row] for row in old.tolist()]
    columns["frames"]["file"] = columns["frames"]["file"].copy()
    columns["frames"]["file"][:] = builder.add(file)
    columns["strings"] = builder.columns()
    meta = {**profile.meta, **of(META, own), "processes": [{**of(RECORD, own), "pid": 7, "cost": {}, "clock": {}}]}
    for one in meta["processes"][0]["engines"][:1]:
        one[own] = one["ended"][own] = one["slowest"][0][own] = 5
    meta["cost"], meta["clock"] = {"callbacks_ns": 5, own: own}, {own: own}
    meta["leadline"], meta["program"]["python"] = f"1.2.3+{own}", f"3.11.7{own}"
    meta["available"]["torch"]["version"] = f"2.13.0+{own}"
    return Profile(Tables(columns), meta)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_text_of_ones_own_stands_in_the_bytes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    own = OWN + data.draw(st.text("abcdefghij", min_size=0, max_size=5))
    names = {kind: data.draw(st.sampled_from(PREFIXES)).format(own) for kind in KINDS}
    file = data.draw(st.sampled_from(FILES)).replace("{}", own)
    profile = drawn(names, file, own)
    place = tmp_path_factory.mktemp("redact")
    write_profile(place / "whole.leadline", profile)
    assert own.encode() in contents(place / "whole.leadline")
    write_profile(place / "out.leadline", redacted(leadline.open(place / "whole.leadline"), frozenset(PARTS)))
    assert OWN.encode() not in contents(place / "out.leadline")
    leadline.open(place / "out.leadline")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_known_beginning_does_not_make_a_name_public(prefix: str) -> None:
    profile = drawn(dict.fromkeys(KINDS, prefix.format(OWN)), "/x.py", OWN)
    made = redacted(profile, frozenset(PARTS))
    assert not [text for text in made.tables.strings if OWN in text]


@pytest.mark.parametrize("file", FILES)
def test_no_file_makes_the_names_in_it_public(file: str) -> None:
    made = redacted(drawn(dict.fromkeys(KINDS, f"Trainer.{OWN}"), file.replace("{}", OWN), OWN), frozenset(PARTS))
    assert not [text for text in made.tables.strings if OWN in text]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(["load", "Patient", "fraud", "customer", "score", "Retail", "_", "2"]), min_size=2, max_size=5
    ),
    st.sampled_from([file for file in FILES if "{}" not in file]),
)
def test_of_names_in_public_packages_only_those_on_the_list_stay(words: list[str], file: str) -> None:
    name = "".join(words)
    listed = set((Path(redact.__file__).with_name("public_functions.txt")).read_text("ascii").split())
    frames = f"process p | pid=1\n  thread t | tid=1\n    python Module.{name} @ {file}"
    made = list(redacted(build(frames), frozenset(PARTS)).tables.strings)
    assert any(name in text for text in made) == (name in listed)


OF_PUBLIC_WORDS = st.lists(
    st.sampled_from(["add", "norm", "attention", "flash", "linear", "gemm", "relu", "grad", "mm", "native", "step"]),
    min_size=1,
    max_size=4,
)
"""Names that a program may choose, although each of their words is public."""


def kept(kind: str, name: str) -> bool:
    frames = f"process p | pid=1\n  thread t | tid=1\n    {kind} NAME"
    made = build(frames)
    strings = [name if text == "NAME" else text for text in made.tables.strings]
    from leadline.profiles.tables import StringBuilder, Tables

    builder = StringBuilder()
    for text in strings:
        builder.add(text)
    tables = Tables({**made.tables.columns, "strings": builder.columns()})
    return name in redacted(type(made)(tables, made.meta), frozenset(PARTS)).tables.strings


@settings(max_examples=300, deadline=None)
@given(
    OF_PUBLIC_WORDS,
    st.sampled_from(["operator", "region"]),
    st.sampled_from(["{}", "aten::{}", "torch::{}", "mylib::{}", "Optimizer.step#{}.step", "{}Backward0", "nccl:{}"]),
)
def test_operators_and_regions_stay_by_their_whole_names(words: list[str], kind: str, form: str) -> None:
    name = form.format("_".join(words))
    listed = Path(redact.__file__).with_name("public_operators.txt").read_text("ascii").splitlines()
    assert kept(kind, name) == (name in listed)


@settings(max_examples=300, deadline=None)
@given(
    OF_PUBLIC_WORDS,
    st.sampled_from(
        [
            *("{}", "{}_kernel", "gemm_{}", "flash_{}_fwd", "cutlass_{}", "ampere_{}", "sm90_{}", "triton_{}", "triton_poi_{}"),
            *("nccl_{}", "cudnn_{}", "void gemm_{}<float>(float*)", "void {}::add<float>(float*)", "void {}<at::Half>(at::Half*)"),
            *("void at::native::vectorized_elementwise_kernel<4, {}_x>(int)", "void thrust::transform<int, {}::grad>(int)"),
        ]
    ),
)  # fmt: skip
def test_a_kernel_of_ones_own_does_not_stay_for_its_public_words(words: list[str], form: str) -> None:
    assert not kept("kernel", form.format("_".join(words)))


@settings(max_examples=200, deadline=None)
@given(OF_PUBLIC_WORDS)
def test_a_kernel_of_inductor_stays_where_it_joins_public_operators(words: list[str]) -> None:
    listed = Path(redact.__file__).with_name("public_operators.txt").read_text("ascii").splitlines()
    operators = {name.rpartition("::")[2] for name in listed}
    splits = itertools.product((False, True), repeat=len(words) - 1)
    joined = []
    for split in splits:
        parts = [words[0]]
        for word, ends in zip(words[1:], split, strict=True):
            parts = [*parts, word] if ends else [*parts[:-1], f"{parts[-1]}_{word}"]
        joined.append(all(part in operators for part in parts))
    assert kept("kernel", f"triton_red_fused_{'_'.join(words)}_3") == any(joined)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("torch/nn/modules/module.py", "Module._call_impl"),
        ("torch/nn/modules/linear.py", "Linear.forward"),
        ("torch/optim/adamw.py", "adamw"),
        ("torch/utils/data/dataloader.py", "_MultiProcessingDataLoaderIter._next_data"),
        ("torch/_tensor.py", "Tensor.backward"),
        ("numpy/_core/fromnumeric.py", "_wrapreduction"),
        ("jax/_src/pjit.py", "_infer_params"),
        ("transformers/trainer.py", "Trainer.training_step"),
        ("transformers/models/llama/modeling_llama.py", "LlamaAttention.forward"),
        ("tqdm/std.py", "tqdm.__iter__"),
    ],
)
def test_public_functions_stay(file: str, name: str) -> None:
    frames = f"process p | pid=1\n  thread t | tid=1\n    python {name} @ /venv/lib/python3.11/site-packages/{file}"
    made = list(redacted(build(frames), frozenset(PARTS)).tables.strings)
    assert name in made and file in made


def test_a_package_of_ones_own_that_is_called_as_a_public_one() -> None:
    frames = (
        "process p | pid=1\n  thread t | tid=1\n"
        "    python Trainer.forward @ /venv/lib/python3.11/site-packages/datasets/claims/scoring.py"
    )
    made = list(redacted(build(frames), frozenset(PARTS)).tables.strings)
    assert "datasets/folder1/file1.py" in made and "function1" in made


def test_a_trace_named_by_its_machine(tmp_path: Path) -> None:
    trace = tmp_path / f"gpu7.{OWN}_4100.1700.pt.trace.json"
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5}]
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert main(["redact", str(trace), "-o", str(tmp_path / "out.leadline")]) == 0
    left = contents(tmp_path / "out.leadline")
    assert OWN.encode() not in left and b"gpu7" not in left and b"aten::mm" in left
    shutil.copy(tmp_path / "out.leadline", tmp_path / "again.leadline")
    assert main(["report", str(tmp_path / "again.leadline")]) == 0


@pytest.mark.parametrize(
    "name",
    [
        "aten::native_layer_norm", "aten::_scaled_dot_product_flash_attention_for_cpu", "AddmmBackward0", "Optimizer.step#AdamW.step",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>>",
        "triton_poi_fused_add_relu_0", "ampere_sgemm_128x64_tn", "Memcpy HtoD (Pageable -> Device)",
    ],
)  # fmt: skip
def test_public_names_stay(name: str) -> None:
    kind = "kernel" if name[:4] in ("void", "trit", "ampe") else "copy" if name[:3] == "Mem" else "operator"
    made = redacted(
        build(f"process p | pid=1\n  thread t | tid=1\n    {kind} {name.replace('#', '%')}"), frozenset(PARTS)
    )
    assert "#" in name or name in made.tables.strings
