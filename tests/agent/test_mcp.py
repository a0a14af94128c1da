"""What an agent that connects with the official client is offered and told."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest
from tests.profiles.archives import members_of, packed

from leadline.agent.answers import AnswerError, source
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile

mcp = pytest.importorskip("mcp")
streamable_http_client = pytest.importorskip("mcp.client.streamable_http").streamable_http_client


def talk(folder, calls):
    """The names of the tools, and the (failed, text) of every call, of a server that was started in `folder`."""

    async def conversation():
        command = mcp.StdioServerParameters(command=sys.executable, args=["-m", "leadline", "mcp"], cwd=folder)
        async with (
            mcp.stdio_client(command) as (read, write),
            mcp.ClientSession(read, write) as session,
        ):
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            answers = [await session.call_tool(name, arguments) for name, arguments in calls]
            return tools, [(answer.is_error, answer.content[0].text) for answer in answers]

    return asyncio.run(asyncio.wait_for(conversation(), 60))


def test_the_official_client(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("\n".join(f"line_{number} = {number}" for number in range(1, 100)))
    many = "\n".join(
        f"  python f{number} @ {program}:{number + 1}\n    operator aten::mm | time=5000 call_time=5000"
        for number in range(600)
    )
    path = str(tmp_path / "run.leadline")
    write_profile(path, build(f"process train.py\n thread main\n{many}".replace(" thread", "  thread").replace("\n  python", "\n    python").replace("\n    operator", "\n      operator")))  # fmt: skip
    tools, answers = talk(
        tmp_path,
        [
            ("summary", {"path": path}),
            ("query", {"path": path, "expression": "operator:aten::mm", "top": 1000}),
            ("query", {"path": path, "expression": "operator:aten::mm where"}),
            ("diff", {"before": [path], "after": [path]}),
            ("source", {"path": path, "file": "train.py", "line": 50}),
            ("source", {"path": path, "file": "/etc/passwd", "line": 1}),
            ("findings", {"path": path}),
            ("whatif", {"path": path}),
            ("summary", {"path": str(tmp_path / "absent.leadline")}),
        ],
    )
    assert tools == ["why", "summary", "findings", "query", "diff", "source", "whatif"]
    failed, texts = zip(*answers, strict=True)
    assert failed == (False, False, True, False, False, True, False, True, True)
    assert "aten::mm" in texts[0]
    asked = json.loads(texts[1])
    assert 10 < len(asked["rows"]) <= 100 and asked["row_count"] == 600, "what is cut is whole"
    assert "at column 24" in texts[2]
    assert "A: 1 run" in texts[3]
    assert "50> line_50 = 50" in texts[4]
    assert "no frames in /etc/passwd" in texts[5]
    assert "findings" in json.loads(texts[6])
    assert "trace window" in texts[7]
    assert "absent.leadline" in texts[8]
    assert all(len(text) < 8_500 for text in texts)


@pytest.mark.parametrize("name", ["elsewhere/secret.py", "project/environment.txt", "project/link.py"])
def test_a_strangers_profile_shows_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A profile names any file it likes; only Python files below the server's folder are shown."""
    for folder in ("elsewhere", "project"):
        (tmp_path / folder).mkdir()
    for file in ("elsewhere/secret.py", "project/environment.txt"):
        (tmp_path / file).write_text("a password\n")
    (tmp_path / "project/link.py").symlink_to(tmp_path / "elsewhere/secret.py")
    path = str(tmp_path / "project/run.leadline")
    write_profile(path, build(f"process train.py\n  thread main\n    python f @ {tmp_path / name}:1\n"))
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.delenv("LEADLINE_SOURCE_ROOT")
    with pytest.raises(AnswerError, match="nor a source file below"):
        source(path, Path(name).name, 1)


def test_over_http_on_a_run_that_goes_on(tmp_path: Path) -> None:
    """The official client over HTTP; the file does not exist yet, only what the run has written until now."""
    session = tmp_path / "run.leadline.part" / ("0" * 16)
    session.mkdir(parents=True)
    (session / "session.json").write_text("{}")
    (session / "7-7000.json").write_text('{"pid": 7, "parent_pid": 1, "complete": false}')

    def write(calls: int) -> None:
        drawn = build(
            f"process t.py | pid=7 start_ns=5 complete=0\n  thread main\n    operator aten::mm | time={calls}/{calls} "
            f"call_time={calls}/{calls}\n"
        )
        (session / "new").write_bytes(packed(members_of(drawn, meta=False), zipfile.ZIP_STORED))
        (session / "new").replace(session / "7-7000.segment")

    write(1)
    command = [sys.executable, "-m", "leadline", "mcp", "--http"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().split()[0]

            async def conversation() -> list[str]:
                async with (
                    streamable_http_client(address) as (read, write_stream, *_),
                    mcp.ClientSession(read, write_stream) as client,
                ):
                    await client.initialize()
                    texts = []
                    for calls in (1, 41):
                        write(calls)
                        asked = {"path": "run.leadline", "expression": "operator:aten::mm show calls"}
                        texts.append((await client.call_tool("query", asked)).content[0].text)
                    texts.append((await client.call_tool("why", {"path": "run.leadline"})).content[0].text)
                    return texts

            first, second, why = asyncio.run(asyncio.wait_for(conversation(), 60))
            assert json.loads(first)["rows"][0]["calls"] == 1
            assert json.loads(second)["rows"][0]["calls"] == 41
            assert "continues" in json.loads(why)["goes_on"]
            base = address.rsplit("/", 2)[0]
            for wrong, headers in ((f"{base}/mcp", {}), (f"{base}/guess/mcp", {}), (address, {"Host": "evil.example"})):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(urllib.request.Request(wrong, data=b"{}", headers=headers), timeout=20)
                assert refused.value.code in (400, 403, 404, 421)
        finally:
            server.terminate()
