"""Who held memory at the peak of each device, by the user's line: what an out-of-memory is asked for first."""

from __future__ import annotations

from leadline.analysis import Analysis
from leadline.analysis.layers import merged_layers
from leadline.analysis.memorysnapshot import Snapshot
from leadline.analysis.peaks import Peak
from leadline.profiles import Profile
from leadline.report.devices import device_name
from leadline.report.markup import code, escaped, table
from leadline.report.paths import PathWords
from leadline.report.timesplit import process_labels
from leadline.report.training.model import Holder, TrainingSummary
from leadline.schema import MetricKind
from leadline.units import number, share, size

MOST_HOLDERS = 12


def largest_peaks(analysis: Analysis) -> list[Peak]:
    """The largest peak of each device, largest first; the CPU is one device."""
    found: dict[int, Peak] = {}
    for peak in analysis.peaks:
        found.setdefault(peak.device, peak)
    return list(found.values())


def device_names(profile: Profile) -> dict[int, str]:
    """By row of devices, -1 for the CPU; two of one model are told apart."""
    labels = process_labels(profile)
    return {-1: "CPU", **{device.row: device_name(device, labels) for device in profile.devices}}


def holders(analysis: Analysis, snapshot: Snapshot | None) -> list[Holder]:
    """Largest first. Nodes of one line, module and operator are one holder. Of several processes (a loader's workers)
    the one with the largest peak of the device counts: they do not peak together, so their bytes are no sum."""
    tree, scopes = analysis.tree, analysis.scopes
    words = PathWords(analysis, "", frames=False)
    listed = tree.tables["metrics"]
    of_largest = {(int(node), peak.device) for peak in largest_peaks(analysis) for node in peak.nodes.tolist()}
    here = listed["metric"] == int(MetricKind.PEAK_LIVE_BYTES)
    groups: dict[tuple[int, str, str, str], int] = {}
    lines: dict[str, tuple[str, int]] = {}
    for node, device, held in zip(
        listed["node"][here].tolist(), listed["device"][here].tolist(), listed["sum"][here].tolist(), strict=True
    ):
        if held <= 0 or (node, device) not in of_largest:
            continue
        place = words.place(node)
        shown = f"{place.short}:{place.line}" if place else ""
        if place:
            lines[shown] = (place.file, place.line)
        module, outer = int(scopes.module[node]), int(scopes.outer[node])
        named = merged_layers(tree.text("name", int(tree.frame_of[module]))) if module >= 0 else ""
        operator = tree.text("name", int(tree.frame_of[outer])) if outer >= 0 else ""
        key = int(device), shown, named, operator
        groups[key] = groups.get(key, 0) + int(held)
    in_snapshot: dict[tuple[str, int], int] = {}
    for live in snapshot.live if snapshot is not None else ():
        user = int(scopes.user[live.row]) if live.row >= 0 else -1
        node = tree.node(user) if user >= 0 else None
        line = (node.file, node.line) if node is not None else (live.file, live.line)
        in_snapshot[line] = in_snapshot.get(line, 0) + live.size
    names = device_names(analysis.profile)
    ranked = sorted(groups.items(), key=lambda item: -item[1])[:MOST_HOLDERS]
    return [
        Holder(
            device=names[device],
            place=place,
            module=module,
            operator=operator,
            held=held,
            in_snapshot=in_snapshot.get(lines.get(place, ("", 0)), 0) if device >= 0 else 0,
        )
        for (device, place, module, operator), held in ranked
    ]


def memory(summary: TrainingSummary) -> str:
    """The section; empty where no tensor memory was measured."""
    lines = []
    if summary.out_of_memory:
        lines.append(f"**Memory was out: {escaped(summary.out_of_memory.splitlines()[0][:400])}**")
    lines += [f"- Peak memory of tensors, {escaped(name)}: {size(held)}." for name, held in summary.peaks]
    for one in summary.allocators:
        idle = one.reserved - one.live
        lines.append(
            f"- Torch's allocator of device {number(one.device)}: {size(one.reserved)} reserved, "
            f"{size(one.live)} live, "
            f"{size(idle)} kept free, {size(one.largest_free)} of it in one piece; {size(one.rounding)} are rounding."
        )
    if not summary.holders:
        return "### Memory\n\n" + "\n".join(lines) if lines else ""
    totals = dict(summary.peaks)
    heads = ["line", "module", "operator", "device", "held at the peak", "share"]
    heads += ["in torch's snapshot"] if summary.allocators else []
    rows = []
    for holder in summary.holders:
        whole = totals.get(holder.device, 0)
        row = [
            code(holder.place),
            code(holder.module),
            code(holder.operator),
            escaped(holder.device),
            size(holder.held),
        ]
        row.append(share(holder.held, whole) if whole else "")
        rows.append([*row, *([size(holder.in_snapshot)] if summary.allocators else [])])
    return "### Memory\n\n" + "\n".join(lines) + "\n\n" + table(heads, rows)
