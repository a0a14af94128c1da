"""`leadline clock-sync`: how far the clocks of two machines are apart, by messages between them."""

from __future__ import annotations

import argparse
import json

from leadline.cli.durations import duration
from leadline.cli.errors import CommandError
from leadline.cli.formats import add_format, chosen_format

_DEFAULT_PAIRS = 200
_FORMATS = ("text", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", metavar="HOST:PORT", help="the other machine; with --serve, where to listen")
    parser.add_argument("--serve", action="store_true", help="answer other machines until interrupted")
    parser.add_argument(
        "--pairs", type=int, default=_DEFAULT_PAIRS, metavar="N", help="number of messages (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds",
        type=duration,
        default=2.0,
        metavar="TIME",
        help="send the messages over this time (default: 2s)",
    )
    add_format(parser, _FORMATS, old=("json",))


def run(arguments: argparse.Namespace) -> int:
    from leadline.capture.identity import boot_id
    from leadline.cli.clock_messages import UnansweredError, answer, exchange
    from leadline.trace.clocks import ClockError, hull_relation

    host, _, port = arguments.address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise CommandError(f"{arguments.address} is not an address; write HOST:PORT, such as node1:7400.")
    if arguments.pairs < 2 or arguments.seconds < 0:
        raise CommandError("Comparing two clocks needs at least two messages; give --pairs 2 or more.")
    try:
        if arguments.serve:
            answer(host, int(port))
            return 0
        found = exchange(host, int(port), arguments.pairs, arguments.seconds)
        relation = hull_relation((found.sent, found.arrived), (found.returned, found.answered), "udp messages")
    except (OSError, UnansweredError, ClockError) as error:
        raise CommandError(f"The clock of {arguments.address} cannot be compared: {error}.") from error
    middle = int(relation.b_ns(found.sent[len(found.sent) // 2])) - found.sent[len(found.sent) // 2]
    told = {
        "clock": "CLOCK_MONOTONIC",
        "theirs_minus_ours_ns": middle,
        "reference_ns": relation.reference_ns,
        "offset_ns": relation.offset_ns,
        "drift": relation.drift,
        "half_width_ns": relation.half_width_ns,
        "method": relation.method,
        "pairs": relation.pairs,
        "unanswered": found.unanswered,
        "boot_id": found.boot_id,
        "our_boot_id": boot_id(),
    }
    if chosen_format(arguments, _FORMATS) == "json":
        print(json.dumps(told))
    else:
        width, drift = relation.half_width_ns / 1e3, relation.drift * 1e6
        print(
            f"{arguments.address} differs by {middle / 1e3:+.1f} us from this clock (error at most {width:.1f} us), "
            "drifts",
            end=" ",
        )
        print(f"{drift:+.3f} us a second ({relation.pairs} messages, {found.unanswered} unanswered)")
    return 0
