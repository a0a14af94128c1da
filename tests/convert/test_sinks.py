"""Where exports go: whole or not at all; and what a request may ask of a format."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from leadline.convert import EXPORTERS, ExportError, Request, What, write
from leadline.convert.sinks import FileSink, FolderSink, MemorySink, Sink, StreamSink
from leadline.profiles.build import build

BY_NAME = {one.name: one for one in EXPORTERS}


def spoil(sink: Sink) -> None:
    """An export that fails on the way."""
    with sink:
        if isinstance(sink, FolderSink):
            with sink.member("a/b") as stream:
                stream.write(b"half")
        else:
            sink.write(b"half")
        raise KeyError


def test_a_file_appears_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "out"
    with FileSink(place) as sink:
        sink.write(b"one ")
        assert not place.exists()
        sink.write(b"two")
    assert place.read_bytes() == b"one two"
    with pytest.raises(KeyError):
        spoil(FileSink(place))
    assert place.read_bytes() == b"one two" and [one.name for one in tmp_path.iterdir()] == ["out"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "out"
    with pytest.raises(KeyError):
        spoil(FolderSink(place))
    assert not list(tmp_path.iterdir())
    with FolderSink(place) as sink, sink.member("stream/0") as stream:
        stream.write(b"events")
    assert (place / "stream" / "0").read_bytes() == b"events"
    with pytest.raises(ExportError, match="choose another name"), FolderSink(place):
        pass
    assert (place / "stream" / "0").read_bytes() == b"events"


@pytest.mark.parametrize("name", ["../x", "/x", "", "a//b", "."])
def test_members_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside a folder"), FolderSink(tmp_path / "out") as sink, sink.member(name):
        pass
    assert not list(tmp_path.iterdir())


def test_a_format_and_a_place_that_do_not_fit_say_so(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="give it a name with -o FOLDER"), StreamSink(io.BytesIO()) as stream:
        stream.member("x")
    with pytest.raises(ExportError, match="not a folder"), FolderSink(tmp_path / "out") as folder:
        folder.write(b"x")


def test_requests_that_a_format_cannot_fulfil() -> None:
    profile = build("operator a | cpu_time=1")
    with pytest.raises(
        ExportError,
        match="speedscope cannot hold the window of a profile; these can: perfetto, chrome, perfetto-archive, ctf, ctf2",
    ):
        write(profile, BY_NAME["speedscope"], Request(What.WINDOW), MemorySink())
    with pytest.raises(ExportError, match="pprof has no option depth; its options are: none"):
        write(profile, BY_NAME["pprof"], Request(options={"depth": "3"}), MemorySink())
