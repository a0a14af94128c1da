"""The hooks of a session leave `os` and the environment as they were."""

import os
import pickle

import pytest

from leadline.capture.config import OPTIONS_VARIABLE, OUTPUT_VARIABLE, SESSION_VARIABLE
from leadline.capture.follow import Follower


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What reached the real functions, which are replaced so that the test lives on."""
    log: list[object] = []
    monkeypatch.setattr(os, "_exit", lambda status: log.append(("exit", status)))
    monkeypatch.setattr(os, "execv", lambda *arguments: log.append(("execv", *arguments)))
    return log


def test_everything_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OUTPUT_VARIABLE, "before")
    monkeypatch.delenv(SESSION_VARIABLE, raising=False)
    functions = (os._exit, os.execv, os.execve)
    follower = Follower(lambda status: None, lambda: None, lambda: None, lambda pid: None)
    follower.install({SESSION_VARIABLE: "part", OUTPUT_VARIABLE: "out"})
    assert (os.environ[SESSION_VARIABLE], os.environ[OUTPUT_VARIABLE]) == ("part", "out")
    assert OPTIONS_VARIABLE not in os.environ
    assert os._exit is not functions[0]
    assert os._exit.__name__ == "_exit"
    for function in (os._exit, os.execv, os.execve, os.kill):  # a pool sends functions by their names
        assert pickle.loads(pickle.dumps(function)) is function
    follower.uninstall()
    assert (os._exit, os.execv, os.execve) == functions
    assert os.environ[OUTPUT_VARIABLE] == "before"
    assert SESSION_VARIABLE not in os.environ


def test_the_handlers_come_first(exits: list[object]) -> None:
    follower = Follower(
        lambda status: exits.append(("handler", status)),
        lambda: exits.append("flush"),
        lambda: exits.append("failed"),
        lambda pid: None,
    )
    follower.install({})
    os._exit(4)
    os.execvp("/bin/true", ["true", "x"])
    follower.uninstall()
    assert exits == [("handler", 4), ("exit", 4), "flush", ("execv", "/bin/true", ["true", "x"]), "failed"]


def test_a_wrapper_around_ours_survives(exits: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    follower = Follower(lambda status: exits.append("handler"), lambda: None, lambda: None, lambda pid: None)
    follower.install({})
    ours = os._exit

    def theirs(status: int) -> None:
        exits.append("theirs")
        ours(status)

    monkeypatch.setattr(os, "_exit", theirs)
    follower.uninstall()
    assert os._exit is theirs
    os._exit(5)
    assert exits == ["theirs", ("exit", 5)]
