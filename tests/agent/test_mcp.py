"""What an agent that connects with the official client is offered and told."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from leadline.agent.answers import AnswerError, source
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile

mcp = pytest.importorskip("mcp")


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
    assert "[truncated" in texts[1] or len(json.loads(texts[1])["rows"]) == 100
    assert "at column 24" in texts[2]
    assert "A: 1 run" in texts[3]
    assert "50> line_50 = 50" in texts[4]
    assert "no frames in /etc/passwd" in texts[5]
    assert "findings" in json.loads(texts[6])
    assert "trace window" in texts[7]
    assert "absent.leadline" in texts[8]
    assert all(len(text) < 25_000 for text in texts)


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
