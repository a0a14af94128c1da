"""What a process leaves while it runs: segments whose numbers stay, events beside them, and a fork in mid-write."""

import textwrap
from itertools import pairwise
from pathlib import Path

from leadline.profiles.reader import open_segment
from leadline.profiles.tables import Tables

FLUSH = """
import glob, shutil, threading
from leadline import _native as native

def flush(name):
    assert native.flush()
    (segment,) = glob.glob("script.leadline.part/*/*.segment")
    shutil.copy(segment, name + ".segment")
    for events in glob.glob("script.leadline.part/*/*.events"):
        shutil.copy(events, name + ".events")
"""


def text(tables: Tables, row: int) -> str:
    data, offsets = tables["strings"]["bytes"], tables["strings"]["offsets"]
    return bytes(data[offsets[row] : offsets[row + 1]]).decode()


def places(tables: Tables) -> list[str]:
    """The path of every node, by its number."""
    found: list[str] = []
    for parent, frame in zip(tables["nodes"]["parent"].tolist(), tables["nodes"]["frame"].tolist(), strict=True):
        name = text(tables, int(tables["frames"]["name"][frame]))
        found.append(f"{found[parent]}/{name}" if parent >= 0 else name)
    return found


def test_numbers_of_nodes_are_the_same_in_successive_segments_and_in_their_events(place) -> None:
    profile = place.measure(
        textwrap.dedent(FLUSH)
        + textwrap.dedent("""
        native.trace_start()
        work("a")
        native.trace_stop()
        flush("first")
        for name in ("b", "c"):
            threading.Thread(target=work, args=(name,), name=name).start()
        def deeper():
            work("a")
        deeper()
        flush("second")
        work("d")
        flush("third")
        """),
    )
    tables = [open_segment(place.folder / f"{name}.segment") for name in ("first", "second", "third")]
    paths = [places(one) for one in tables]
    assert len(paths[0]) < len(paths[1]) < len(paths[2])
    for earlier, later in pairwise(paths):
        assert later[: len(earlier)] == earlier
    assert sum(one.endswith("/a") for one in paths[0]) == 1  # samples may have found other lines
    # The window was closed before the first segment: its events belong to every later one as well.
    for name in ("first", "second", "third"):
        segment, events = (place.folder / f"{name}.{end}" for end in ("segment", "events"))
        assert not any(open_segment(segment)["events"]["node"].tolist())
        both = open_segment(segment, events=events)
        assert [places(both)[node].rpartition("/")[2] for node in both["events"]["node"].tolist()] == ["a"]
    assert (place.folder / "first.events").read_bytes() == (place.folder / "third.events").read_bytes()
    assert profile.events["node"].size == 1  # of the whole file
    assert place.regions(profile) == ["a", "a", "b", "c", "d"]


def test_a_killed_process_keeps_the_events_of_its_window(place) -> None:
    place.write_work(
        "script.py",
        FLUSH
        + textwrap.dedent("""
        import signal
        native.trace_start()
        work("a")
        flush("first")
        os.kill(os.getpid(), signal.SIGKILL)
        """),
    )
    place.leadline("run", "-o", "script.leadline", "script.py")
    if not (place.folder / "script.leadline").exists():
        (part,) = place.folder.glob("*.part")
        place.leadline("recover", str(part), "-o", "script.leadline")
    events = place.open("script.leadline").table("events")
    assert len(events["node"]) == 1


def test_a_fork_during_a_long_write_leaves_the_other_threads_running(place) -> None:
    # The writer cannot go on until a Python thread has read what it wrote, and that thread begins in the middle of the
    # fork: main gives up the GIL only when it has to.
    place.write(
        "program.py",
        """
        import faulthandler, os, sys, threading
        from leadline import _native as native

        faulthandler.dump_traceback_later(60, exit=True)
        os.mkfifo("x.segment.tmp")
        os.register_at_fork(before=native.before_fork, after_in_parent=native.after_fork_in_parent)
        native.start("x.segment", max_nodes=10_000, flush_interval_s=3600.0, trace_max_events=10, record_shapes=False,
                     memory=False, track_modules=False)
        for number in range(2000):
            native.region_end(native.region_begin(f"{number:0100}"))
        pipe = os.open("x.segment.tmp", os.O_RDONLY)  # waits until the flush thread writes
        begin = threading.Lock()
        begin.acquire()

        def read():
            begin.acquire()
            while os.read(pipe, 1 << 16):
                pass

        reader = threading.Thread(target=read)
        reader.start()
        sys.setswitchinterval(100)
        begin.release()
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        reader.join()
        assert native.write_status() == "", native.write_status()
        assert native.stop()
        """,
    )
    done = place.python("-W", "ignore::DeprecationWarning", "program.py")
    assert done.returncode == 0, done.stderr.decode()
    assert (Path(place.folder) / "x.segment").is_file()
