"""Plug-ins of PJRT: calls through the table that JAX is handed, on one without a device, and a real one without a GPU."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.jax.conftest import PROGRAMS, Ran
from tests.truth.invariants import contradictions

import leadline

_SOURCE = Path(__file__).parents[2] / "native/testing/pjrt/fake_plugin.c"
_ABI = Path(__file__).parents[2] / "native/providers/pjrt/pjrt_abi.h"
_STRUCTURES = {
    "kEventDestroy": "PJRT_Event_Destroy",
    "kEventAwait": "PJRT_Event_Await",
    "kEventOnReady": "PJRT_Event_OnReady",
    "kClientCreate": "PJRT_Client_Create_Args",
    "kClientPlatformName": "PJRT_Client_PlatformName_Args",
    "kClientCompile": "PJRT_Client_Compile_Args",
    "kBufferFromHostBuffer": "PJRT_Client_BufferFromHostBuffer_Args",
    "kDeviceLocalHardwareId": "PJRT_Device_LocalHardwareId_Args",
    "kExecutableDestroy": "PJRT_Executable_Destroy_Args",
    "kExecutableNumOutputs": "PJRT_Executable_NumOutputs_Args",
    "kLoadedExecutableDestroy": "PJRT_LoadedExecutable_Destroy_Args",
    "kLoadedExecutableGetExecutable": "PJRT_LoadedExecutable_GetExecutable_Args",
    "kLoadedExecutableExecute": "PJRT_LoadedExecutable_Execute_Args",
    "kExecutableDeserializeAndLoad": "PJRT_Executable_DeserializeAndLoad_Args",
    "kBufferDestroy": "PJRT_Buffer_Destroy_Args",
    "kBufferOnDeviceSize": "PJRT_Buffer_OnDeviceSizeInBytes_Args",
    "kBufferDevice": "PJRT_Buffer_Device_Args",
    "kBufferCopyToDevice": "PJRT_Buffer_CopyToDevice_Args",
    "kBufferToHostBuffer": "PJRT_Buffer_ToHostBuffer_Args",
    "kBufferReadyEvent": "PJRT_Buffer_ReadyEvent_Args",
    "kCopyToDeviceStreamAddChunk": "PJRT_CopyToDeviceStream_AddChunk_Args",
    "kBufferCopyToMemory": "PJRT_Buffer_CopyToMemory_Args",
    "kBufferCopyRawToHost": "PJRT_Buffer_CopyRawToHost_Args",
    "kTransferManagerTransferData": "PJRT_AsyncHostToDeviceTransferManager_TransferData_Args",
    "kTransferManagerDevice": "PJRT_AsyncHostToDeviceTransferManager_Device_Args",
}
"""What a plug-in calls the arguments of each slot, in the error that a structure of a wrong size gets."""


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """The plug-in without a device."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("Needs a C compiler, not installed here.")
    library = tmp_path / "fake_plugin.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", str(_SOURCE), "-o", str(library)], check=True)
    return library


def environment(fake: Path, platforms: str) -> dict[str, str]:
    """JAX finds the plug-in by itself."""
    return {
        "PJRT_NAMES_AND_LIBRARY_PATHS": f"fake:{fake}",
        "JAX_PLATFORMS": platforms,
        "FAKE_PLUGIN": str(fake),
    }


def test_calls_of_a_plugin_stand_on_their_lines_and_its_table_is_given_back(fake: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.leadline"
    command = [sys.executable, str(PROGRAMS / "plugin.py"), str(output)]
    done = subprocess.run(
        command,
        env={**os.environ, **environment(fake, "cpu")},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert all(said["changed"]) and said["restored"]
    assert said["failed"] == "asked to fail (slot 20)" and said["unplayed"].startswith("not played")  # as they came
    assert said["came_back"] and said["executed"] == 15 and said["errors_freed"] == 2
    ran = Ran(tmp_path, leadline.open(output), done.stdout, done.stderr)
    assert contradictions(ran.profile) == []
    assert ran.runs("PJRT_LoadedExecutable_Execute") == 5  # neither those in the pause nor those after
    assert ran.runs("PJRT_Client_BufferFromHostBuffer") == 3
    assert ran.runs("PJRT_Buffer_ToHostBuffer") == 1  # the question how much is none
    assert ran.runs("PJRT_Client_Compile") == 1 and ran.runs("PJRT_Client_Create") == 1
    lines = (PROGRAMS / "plugin.py").read_text().splitlines()
    [execute] = ran.rows("PJRT_LoadedExecutable_Execute")
    path = [lines[ran.line(row) - 1].strip() for row in _above(ran, execute) if ran.profile.tree.node(row).line]
    assert "call(55, 1, 0, 0, 1, 0, ctypes.addressof(lists), 0, 0)" in path
    [device] = [one for one in ran.profile.devices if one.index == 3]
    copied = ran.profile.tree.exclusive("copy_bytes", device=device.row)
    by_name = {ran.paths[row]: int(copied.sum[row]) for row in range(len(ran.paths)) if copied.count[row]}
    assert by_name == {
        "PJRT_Client_BufferFromHostBuffer": 12_000,
        "PJRT_Buffer_ToHostBuffer": 4_000,
        "PJRT_AsyncHostToDeviceTransferManager_TransferData": 700,
    }
    [on_device] = ran.rows("on the device")
    assert ran.parents[on_device] == execute and said["finished"] == 5
    lasted = ran.profile.tree.exclusive("call_time", device=device.row)
    assert lasted.count[on_device] == 5 and lasted.sum[on_device] > 0
    told = ran.profile.meta["processes"][0]["available"]["jax"]["pjrt"]
    assert told["plugins"] >= 1 and told["executed"] == 5 and told["failed"] == 2 and told["copied_bytes"] == 17_200
    assert told["made_bytes"] == 5 * 8_000 and told["ended"] == 5 and told["not_awaited"] == 0


def _above(ran: Ran, row: int) -> list[int]:
    rows = []
    while row >= 0:
        rows.append(row)
        row = ran.parents[row]
    return rows


def test_a_client_that_jax_makes_through_the_table_is_seen(run: Callable[..., Ran], fake: Path) -> None:
    ran = run("plugin_client.py", environment=environment(fake, "fake"))
    assert "asked to fail (slot 10)" in ran.output  # the plug-in's own error reached the program through JAX
    assert ran.runs("PJRT_Client_Create") == 1
    assert ran.profile.meta["processes"][0]["available"]["jax"]["pjrt"]["failed"] == 1


def test_a_plugin_of_another_major_version_is_left_alone_and_said(run: Callable[..., Ran], fake: Path) -> None:
    ran = run("plugin_client.py", "5", environment=environment(fake, "cpu"))
    assert any("is of version 5" in loss.detail for loss in ran.profile.losses)
    assert ran.runs("PJRT_Client_Create") == 0


def test_the_slots_are_those_of_the_real_cuda_plugin() -> None:
    spec = next((one for kind in (13, 12) if (one := _plugin_of(kind))), None)
    if spec is None:
        pytest.skip("JAX's plug-in for CUDA is not installed here; `make test-pjrt` downloads it and runs this.")
    found = subprocess.run(
        [sys.executable, str(PROGRAMS / "real_plugin.py"), str(spec), *_slots().values()],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    told = json.loads(found.stdout.splitlines()[-1])
    assert told["major"] == 0 and told["size"] >= 40 + 8 * 101
    for name, number in _slots().items():
        if name != "kErrorDestroy":
            assert f" {_STRUCTURES[name]} size" in told["errors"][number], name
    assert told["through_us"] == told["errors"] and told["changed"] and told["restored"]
    assert told["client"] and told["client"] == told["client_through_us"]  # no GPU: refused, and in the same words


def _plugin_of(kind: int) -> Path | None:
    name = f"jax_plugins.xla_cuda{kind}"
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    places = spec.submodule_search_locations if spec else None
    library = Path(places[0], "xla_cuda_plugin.so") if places else Path()
    return library if library.is_file() else None


def _slots() -> dict[str, str]:
    return dict(re.findall(r"^  (k\w+) = (\d+),$", _ABI.read_text(), re.MULTILINE))


def test_copies_are_the_vendors_to_count_from_when_its_provider_begins() -> None:
    from leadline.capture.providers.jax.plugins import Plugins

    class Native:
        """Keeps what it was asked."""

        def __init__(self) -> None:
            self.started: list[dict[str, object]] = []

        def provider_start(self, name: str, options: dict[str, object]) -> dict[str, object]:
            self.started.append(options)
            return {"ok": True, "message": ""}

        def provider_stop(self, name: str) -> dict[str, object]:
            return {}

    native, vendor = Native(), [""]
    plugins = Plugins(native, lambda: vendor[0], lambda sentence: None)
    plugins.poll()
    assert native.started == [], "no plug-in, nothing to say"
    new, keep = ctypes.pythonapi.PyCapsule_New, ctypes.create_string_buffer(8)
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    plugins._loaded(new(ctypes.addressof(keep), None, None))
    plugins.poll()
    vendor[0] = "nvidia"
    plugins.poll()
    plugins.poll()
    assert native.started == [{"table": ctypes.addressof(keep), "bytes": True}, {"bytes": False}]
