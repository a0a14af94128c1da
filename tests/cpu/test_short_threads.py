"""Threads that end before a listing could meet them: those of `threading` are sampled, of others the amount is said."""

from __future__ import annotations

import pytest

SHORT = """
ran = []
def short():
    begin = time.thread_time()
    spin(0.015)
    ran.append(time.thread_time() - begin)
"""


def test_threads_that_end_at_once_are_sampled(sample) -> None:
    seen = sample(
        SHORT
        + """
for _ in range(40):
    thread = threading.Thread(target=short)
    thread.start()
    thread.join()
print(json.dumps(sum(ran)))
"""
    )
    tree = seen.profile.tree
    whole = tree.inclusive("cpu_sample").sum
    found = sum(int(whole[node.row]) for node in tree.walk() if node.name == "short") / 1e9
    assert found == pytest.approx(seen.said, rel=0.15)
    assert seen.losses() == {}


def test_what_ended_before_it_was_seen_is_said(sample) -> None:
    """Threads that Python's `threading` knows nothing of, each shorter than the time between two listings."""
    seen = sample(
        SHORT
        + """
import _thread
for number in range(40):
    _thread.start_new_thread(short, ())
    while len(ran) == number:
        time.sleep(0.001)
print(json.dumps(sum(ran)))
"""
    )
    (sentence,) = (loss.detail for loss in seen.profile.losses if str(loss.kind) == "samples_missing")
    assert "threads that ended before they were seen" in sentence
    tree = seen.profile.tree
    listed = sum(  # threads that happened to be there at a listing
        int(tree.inclusive("cpu_sample").sum[thread.node.row])
        for thread in seen.profile.threads
        if thread.name != "main"
    )
    assert float(sentence.split()[0]) + listed / 1e9 == pytest.approx(seen.said, rel=0.1)
