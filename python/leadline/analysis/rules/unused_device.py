"""`unused_device`: there is an accelerator that nothing ran on."""

from __future__ import annotations

from leadline.analysis.rules.base import CannotTell, Case, Finding, Rule, Severity, Values
from leadline.profiles.makers import is_amd


class UnusedDevice(Rule):
    name = "unused_device"
    asks = "Is there an accelerator that nothing ran on?"

    def check(self, case: Case, values: Values) -> list[Finding]:
        devices = case.profile.devices
        if not devices:
            raise CannotTell("no accelerator was seen")
        metrics = case.profile.table("metrics")
        used = set(metrics["device"][metrics["count"] > 0].tolist())
        known = {(one.uuid or f"{one.process}:{one.index}"): one.name for one in devices}
        busy = {(one.uuid or f"{one.process}:{one.index}") for one in devices if one.row in used}
        idle = [name for key, name in known.items() if key not in busy]
        if not idle:
            return []
        loop = case.known_loop
        return [
            Finding(
                self.name,
                Severity.WARNING if not busy else Severity.INFO,
                f"{len(idle)} of {len(known)} devices did nothing ({idle[0]})",
                case.no_gain("how long the device would take is not known"),
                (),
                case.lines([loop.root, *loop.anchors[:3].tolist()]) if loop else (),
                ("no kernel, copy or memory of this run was on it",),
                "Move model and batches there with .to('cuda'), or hide it with "
                f"{'HIP' if is_amd(devices) else 'CUDA'}_VISIBLE_DEVICES.",
                self.learn_more,
                0.3 if not busy else 0.05,
            )
        ]
