"""Who did not arrive: simulated jobs of 16 ranks in tensor, data and pipeline groups, stopped at a random moment."""

import random

import pytest

from leadline.analysis.hang import GroupState, diagnose

WORLD, TP = 16, 2


def groups() -> list[tuple[tuple[str, str, int], list[int]]]:
    made = [(("0", "default_pg", WORLD), list(range(WORLD)))]
    made += [((f"tp{first}", "mesh_tp", TP), [first, first + 1]) for first in range(0, WORLD, TP)]
    made += [((f"dp{column}", "mesh_dp", WORLD // TP), list(range(column, WORLD, TP))) for column in range(TP)]
    return made


def run(stopped: int, at: int, seed: int) -> list[GroupState]:
    """Every rank runs one program of collectives; `stopped` never begins its collective number `at`."""
    choose = random.Random(seed)
    kinds = {"0": groups()[:1], "tp": groups()[1 : 1 + WORLD // TP], "dp": groups()[1 + WORLD // TP :]}
    program = [choose.choice(list(kinds)) for _ in range(40)]
    place = [0] * WORLD
    begun = {(key[0], rank): 0 for key, ranks in groups() for rank in ranks}
    waits: dict[int, str] = {}
    moving = True
    while moving:
        moving = False
        for rank in range(WORLD):
            if rank in waits or place[rank] == len(program) or (rank == stopped and place[rank] == at):
                continue
            key, _ = next((key, ranks) for key, ranks in kinds[program[place[rank]]] if rank in ranks)
            begun[key[0], rank] += 1
            waits[rank] = key[0]
            moving = True
        for key, ranks in groups():
            if all(waits.get(rank) == key[0] for rank in ranks):
                for rank in ranks:
                    del waits[rank]
                    place[rank] += 1
                moving = True
    return [
        GroupState(rank, key, begun[key[0], rank], "allreduce", 10, waits.get(rank) == key[0])
        for key, ranks in groups()
        for rank in ranks
        if begun[key[0], rank]
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_one_that_stopped_is_named_alone(seed: int) -> None:
    choose = random.Random(seed)
    stopped, at = choose.randrange(WORLD), choose.randrange(1, 30)
    verdict = diagnose(run(stopped, at, seed), range(WORLD))
    assert verdict.roots == (stopped,), verdict.sentences
    assert verdict.sentences[0].startswith(f"Rank {stopped} did not arrive")


def test_a_rank_that_goes_on_is_not_named() -> None:
    assert diagnose(run(-1, 0, 1), range(WORLD)) == diagnose([], range(WORLD))


KEY = ("0", "default_pg", 3)


def test_a_rank_without_a_record_is_not_said_to_be_late() -> None:
    there = [GroupState(rank, KEY, 4, "allreduce", 10, True) for rank in (0, 1)]
    verdict = diagnose(there, range(3), silent=[2])
    assert verdict.roots == ()
    assert verdict.sentences == ("Of default_pg (3 ranks) ranks 2 left no record; whether they arrived is not known.",)


def test_one_that_has_begun_nothing_is_behind() -> None:
    there = [GroupState(rank, KEY, 1, "barrier", -1, True) for rank in (0, 1)]
    verdict = diagnose(there, range(3))
    assert verdict.roots == (2,)
    assert "it has begun 0 collectives of it, and ranks 0-1 wait there" in verdict.sentences[0]


def test_different_collectives_and_sizes_are_told() -> None:
    there = [GroupState(rank, KEY, 4, "allreduce", 10 + (rank == 1), True) for rank in range(3)]
    (sentence,) = diagnose(there, range(3)).sentences
    assert "Rank 1 called allreduce of 11 elements, the others allreduce of 10 elements" in sentence


def test_all_arrived_is_the_network() -> None:
    there = [GroupState(rank, KEY, 4, "allreduce", 10, True) for rank in range(3)]
    (sentence,) = diagnose(there, range(3)).sentences
    assert "the network, or a device, does not answer" in sentence


def test_groups_entered_in_opposite_order() -> None:
    a, b = ("a", "", 2), ("b", "", 2)
    there = [
        GroupState(0, a, 1, "allreduce", 1, True),
        GroupState(1, b, 1, "allreduce", 1, True),
        GroupState(1, a, 0, "allreduce", 1, False),
        GroupState(0, b, 0, "allreduce", 1, False),
    ]
    verdict = diagnose(there, range(2))
    assert verdict.roots == () and "different order" in verdict.sentences[0]


def message(sender: int, receiver: int, rank: int, begun: int, waits: bool, elements: int = 5) -> GroupState:
    key = (f"{sender}>{receiver} 0", f"from rank {sender} to rank {receiver}", 2)
    return GroupState(rank, key, begun, "send" if rank == sender else "recv", elements, waits)


def test_a_pipeline_whose_second_stage_stopped() -> None:
    """Every stage has begun receiving the fourth message, but the one after the one that stopped."""
    there = []
    for rank in range(4):
        if rank:
            there.append(message(rank - 1, rank, rank, 4 - (rank == 1), rank > 1))
        if rank < 3:
            there.append(message(rank, rank + 1, rank, 4 if rank == 0 else 3, False))
    verdict = diagnose(there, range(4))
    assert verdict.roots == (1,)
    assert (
        "Rank 1 did not send message no. 4 to rank 2: it has begun 3, and rank 2 waits for it."
        in (verdict.sentences[0])
    )
    assert verdict.sentences[1].startswith("Rank 2 is late, too")


def test_a_receiver_that_has_begun_nothing_is_behind() -> None:
    verdict = diagnose([message(0, 1, 0, 1, True)], range(8))
    assert verdict.roots == (1,)
    assert "Rank 1 did not receive message no. 1 from rank 0: it has begun 0" in verdict.sentences[0]


def test_messages_of_two_sizes_are_told() -> None:
    (sentence,) = diagnose([message(0, 1, 0, 2, True, 5), message(0, 1, 1, 2, True, 6)], range(2)).sentences
    assert "a message of 5 elements" in sentence and "a message of 6 elements" in sentence
    (sentence,) = diagnose([message(0, 1, 0, 2, True), message(0, 1, 1, 2, True)], range(2)).sentences
    assert "the network, or a device, does not answer" in sentence


def tagged(sender: int, receiver: int, tag: str, rank: int, begun: int) -> GroupState:
    key = (f"{sender}>{receiver} {tag} 0", f"from rank {sender} to rank {receiver}, {tag}", 2)
    return GroupState(rank, key, begun, "send" if rank == sender else "recv", 5, True)


def test_a_message_of_another_tag_is_not_the_one_that_is_waited_for() -> None:
    """Rank 0 has sent one with tag 1 and computes on; rank 1 waits for one with tag 2."""
    verdict = diagnose([tagged(0, 1, "tag 1", 0, 1), tagged(0, 1, "tag 2", 1, 1)], range(2))
    assert verdict.roots == (0,)
    assert verdict.sentences[0] == (
        "Rank 0 did not send message no. 1 with tag 2 to rank 1: it has begun 0, and rank 1 waits for it."
    )


def test_a_chain_of_sends_ends_at_who_does_not_receive() -> None:
    there = [
        message(0, 1, 0, 4, True),
        message(0, 1, 1, 3, False),
        message(1, 2, 1, 3, True),
        message(1, 2, 2, 2, False),
    ]
    assert diagnose(there, range(3)).roots == (2,)


def test_nobody_is_blamed_for_a_message_that_may_come_from_any() -> None:
    any_rank = GroupState(1, ("any>1 0", "from any rank to rank 1", 1), 3, "recv_anysource", 5, True)
    verdict = diagnose([message(0, 1, 0, 3, True), any_rank], range(2))
    assert verdict.roots == () and not [one for one in verdict.sentences if "Rank 1" in one]


def attached(rank: int, since: int, begun: int, *, waits: bool, sure: bool = True) -> GroupState:
    return GroupState(rank, KEY, begun, "allreduce", 10, waits, since, sure)


def test_ranks_measured_from_different_moments_are_compared_where_torch_counts_too() -> None:
    there = [attached(0, 0, 9, waits=True), attached(1, 5, 8, waits=False), attached(2, 0, 9, waits=True)]
    assert diagnose(there, range(3)).roots == (1,)


@pytest.mark.parametrize(
    "there",
    [
        [attached(0, 0, 9, waits=True), attached(1, 5, 7, waits=True, sure=False), attached(2, 0, 9, waits=True)],
        [attached(0, 0, 9, waits=True), attached(1, -1, 2, waits=True), attached(2, 0, 9, waits=True)],
    ],
)
def test_nobody_is_named_where_counts_cannot_be_compared(there: list[GroupState]) -> None:
    verdict = diagnose(there, range(3))
    assert verdict.roots == ()
    assert verdict.sentences == (
        "No rank of default_pg (3 ranks) can be called late: rank 1 has been measured from the middle of the job "
        "on, so counts of ranks cannot be compared.",
    )


def test_who_was_attached_inside_a_collective_is_not_behind() -> None:
    there = [attached(0, 0, 9, waits=True), attached(2, 0, 9, waits=True)]
    verdict = diagnose(there, range(3), attached=[1])
    assert verdict.roots == ()
    assert verdict.sentences == ("Of default_pg (3 ranks) ranks 1 left no record; whether they arrived is not known.",)
    assert diagnose(there, range(3)).roots == (1,)
