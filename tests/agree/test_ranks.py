"""All ranks of a job in any order and any grouping give the same answers."""

from __future__ import annotations

import itertools
import tarfile
from pathlib import Path

import pytest
from tests.agree import said
from tests.agree.test_traces import TRACES

from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.schema import EventKind, FrameKind
from leadline.trace.importers import import_traces

JOB = TRACES / "param-dlrm-8rank-v100" / "dlrm_kineto.tar.gz"
RANKS = 4


def answers(profile: Profile) -> object:
    return (
        sorted((one.rank, one.pid) for one in profile.processes),
        [
            sums
            for kind in (EventKind.OPERATOR, EventKind.PHASE)
            for sums in vars(said.of_events(profile, kind)).values()
        ],
        list(vars(said.of_tree(profile, FrameKind.OPERATOR)).values()),
        list(vars(said.of_device(profile)).values()),
        said.launched(profile),
        sorted((str(loss.kind), loss.count, loss.detail) for loss in profile.losses),
    )


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    if not JOB.exists():
        pytest.skip("the shared traces are not here")
    folder = tmp_path_factory.mktemp("ranks")
    with tarfile.open(JOB) as archive:
        members = sorted((one for one in archive.getmembers() if one.name.endswith(".json")), key=lambda one: one.name)
        for rank, member in enumerate(members[:RANKS]):
            stream = archive.extractfile(member)
            assert stream is not None
            (folder / f"rank{rank}.json").write_bytes(stream.read())
    return sorted(folder.iterdir())


def test_any_order_and_grouping_gives_the_same_answers(ranks: list[Path]) -> None:
    expected = answers(import_traces(ranks))
    assert answers(import_traces([ranks[0].parent])) == expected
    for order in itertools.islice(itertools.permutations(ranks), 1, 24, 7):
        assert answers(import_traces(order)) == expected
    for groups in (((0, 1), (2, 3)), ((3,), (0, 2), (1,)), ((2, 1, 0), (3,))):
        parts = [import_traces([ranks[rank] for rank in group]) for group in groups]
        assert answers(merge_profiles(parts)) == expected
