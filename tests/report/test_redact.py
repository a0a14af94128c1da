"""`leadline redact` and `leadline report --meta`: nothing of one's own is left in the bytes, and the figures are the same."""

import json
import zipfile
from pathlib import Path

import pytest

import leadline
from leadline.analysis.device_copies import between_devices
from leadline.cli.main import main
from leadline.profiles import write_profile
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder, synthetic_meta

SECRETS = {
    "paths": [b"/home/alice", b"acme-project", b"/data/customers"],
    "names": [b"secret_layer", b"SecretNet", b"train_on_customers", b"secretop", b"SecretFunction", b"secret_kernel",
              b"secret-thread", b"secret region", b"secret-host", b"secret_model.py", b"secret-job"],
    "arguments": [b"--customer", b"4711", b"[[31,77]]", b"Could not read"],
}  # fmt: skip


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    profile = build(
        """
process python /home/alice/acme-project/train.py --customer 4711 | pid=7 rank=0
  thread MainThread | tid=7 wall_ns=1000
    python train_on_customers @ /home/alice/acme-project/secret_model.py:31
      module model.secret_layer.0 [SecretNet]
        operator aten::mm | detail={"input_shapes":"[[31,77]]"} time=5 call_time=5
        operator mylib::secretop | time=6 call_time=6
        operator SecretFunctionBackward | time=1 call_time=1
        operator AddmmBackward0 | time=2 call_time=2
      region secret region | time=3
        python _call_impl @ /home/alice/venv/lib/python3.11/site-packages/torch/nn/modules/module.py:5
          kernel secret_kernel_cu | gpu_time@0:7=10
          kernel void at::native::vectorized_add | gpu_time@0:7=11
  thread secret-thread
""",
        losses=[("provider_unavailable", 1, "Could not read /data/customers.")],
    )
    meta = synthetic_meta()
    meta["program"] = {
        "argv": ["python", "/home/alice/acme-project/train.py", "--customer", "4711"],
        "cwd": "/home/alice",
    }
    meta["host"] = {"hostname": "secret-host", "cpus": 8, "machine": "x86_64"}
    meta["available"] = {"torch": {"ok": True, "version": "2.13.0", "message": "from /home/alice"}}
    meta["findings"] = {"title": "train_on_customers is slow"}
    meta["processes"] = [{"pid": 7, "rank": 0, "hostname": "secret-host", "launch": {"job": "secret-job", "world_size": 2},
                          "program": {"argv": ["--customer"]}, "sources": {"/home/alice/acme-project/train.py": "1"}}]  # fmt: skip
    profile.meta.update(meta)
    path = tmp_path / "whole.leadline"
    write_profile(path, profile)
    return path


def everything(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())


def test_nothing_of_ones_own_is_left_and_the_figures_are_the_same(whole: Path, tmp_path: Path, capsys) -> None:
    before = everything(whole)
    assert all(secret in before for secrets in SECRETS.values() for secret in secrets)
    output = tmp_path / "redacted.leadline"
    assert main(["redact", str(whole), "-o", str(output)]) == 0
    left = everything(output)
    assert [secret for secrets in SECRETS.values() for secret in secrets if secret in left] == []
    one, other = leadline.open(whole), leadline.open(output)
    for column in ("node", "metric", "count", "sum"):
        assert one.table("metrics")[column].tolist() == other.table("metrics")[column].tolist()
    assert one.table("nodes")["parent"].tolist() == other.table("nodes")["parent"].tolist()
    for kept in (
        b"aten::mm",
        b"AddmmBackward0",
        b"at::native::vectorized_add",
        b"torch/nn/modules/module.py",
        b"_call_impl",
    ):
        assert kept in left, kept
    capsys.readouterr()
    for verb in ("report", "analyze"):
        assert main([verb, str(output)]) == 0
    text = capsys.readouterr().out
    assert not any(secret.decode() in text for secrets in SECRETS.values() for secret in secrets)


@pytest.mark.parametrize("part", ["paths", "names", "arguments"])
def test_one_part_is_taken_out_and_the_others_stay(whole: Path, tmp_path: Path, capsys, part: str) -> None:
    output = tmp_path / "redacted.leadline"
    assert main(["redact", str(whole), "-o", str(output), f"--{part}"]) == 0
    assert "are still in it" in capsys.readouterr().out
    left = everything(output)
    assert [secret for secret in SECRETS[part] if secret in left] == []
    if part != "names":
        assert b"train_on_customers" in left
    if part != "paths":
        assert b"/home/alice/acme-project" in left


def test_the_whole_profile_is_never_replaced(whole: Path, capsys) -> None:
    assert main(["redact", str(whole), "-o", str(whole)]) == 2
    assert "choose another file" in capsys.readouterr().err


def test_info_says_what_is_in_a_file(whole: Path, capsys) -> None:
    assert main(["info", str(whole), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["processes"], found["threads"], found["ranks"], found["losses"]) == (1, 2, [0], 1)
    assert found["metrics"] == ["time", "call_time", "gpu_time"] and found["file_bytes"] == whole.stat().st_size
    assert main(["info", str(whole)]) == 0
    assert "1 (0)" in capsys.readouterr().out


def test_a_redacted_profile_of_amds_devices_is_still_told_in_amds_words(tmp_path: Path) -> None:
    builder = ProfileBuilder()
    process = builder.process("train.py")
    links = [{"device": 1, "type": "xGMI", "mb_per_s": 64_000, "note": "secret"}, {"device": 0, "type": "secret"}]
    told = {"vendor": "AMD", "wavefront": 64, "architecture": "gfx942", "links": links, "path": "/secret"}
    builder.device(process, 0, "AMD Instinct MI300X", detail=json.dumps(told))
    builder.device(process, 1, "AMD Instinct MI300X")
    top = builder.node_of_thread(builder.thread(process, "main"))
    copy = '{"direction": "PtoP", "from": 0, "to": 1, "link": "xGMI", "file": "/secret"}'
    for kind, name, detail in (
        ("kernel", "Cijk_Ailk_Bljk_BBS_BH_MT32x32x64_MI16x16x16x1_SN", ""),
        ("kernel", "secret_kernel", ""),
        ("copy", "Memcpy PtoP (Device 0 -> Device 1, xGMI)", copy),
    ):
        builder.add(builder.child(top, builder.frame(kind, name, detail=detail)), "gpu_time", 10, 0, 7)
    whole, redacted = tmp_path / "whole.leadline", tmp_path / "redacted.leadline"
    write_profile(whole, builder.profile())
    assert main(["redact", str(whole), "-o", str(redacted)]) == 0
    assert b"secret" not in everything(redacted)
    found = leadline.open(redacted)
    assert found.devices[0].detail["wavefront"] == 64 and found.devices[0].detail["vendor"] == "AMD"
    assert [(one.source, one.target, one.link_bytes_s) for one in between_devices(found)] == [(0, 1, 64e9)]
    names = {node.name for node in found.tree.find(kind="kernel")}
    assert names == {"Cijk_Ailk_Bljk_BBS_BH_MT32x32x64_MI16x16x16x1_SN", "kernel1"}
