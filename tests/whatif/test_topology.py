"""Networks that nobody named: what the profile says of its devices' links, else what is usual for the GPU."""

from __future__ import annotations

import pytest

from leadline.hardware.gpus import find_gpu
from leadline.trace.links import links_of
from leadline.whatif.draws import Draw
from leadline.whatif.tables import DeviceInfo
from leadline.whatif.topology import network_of_topology


def joined(number: int, *, apart: tuple[int, int] | None = None, mb_per_s: int = 64_000) -> list[DeviceInfo]:
    """Devices with a link of xGMI between any two, but for one pair with PCIe."""

    def link(here: int, there: int) -> dict[str, object]:
        far = apart is not None and {here, there} == set(apart)
        return {"device": there, "type": "PCIe" if far else "xGMI", "mb_per_s": 32_000 if far else mb_per_s}

    return [
        DeviceInfo("AMD Instinct MI300X", links=links_of({"links": [link(at, to) for to in range(number) if to != at]}))
        for at in range(number)
    ]


def asked(devices: list[DeviceInfo], workers: int, name: str = "auto") -> tuple[float, str]:
    network, said = network_of_topology(name, workers, find_gpu("AMD Instinct MI300X"), None, Draw(), devices)
    return network.bandwidth_bytes_s / 1e9, said


@pytest.mark.parametrize(("workers", "gb_s"), [(8, 448), (4, 192), (2, 64)])
def test_fewer_devices_of_a_machine_have_fewer_links(workers: int, gb_s: float) -> None:
    found, said = asked(joined(8), workers)
    assert found == pytest.approx(gb_s) and "assumed" not in said
    assert f"{workers - 1} xGMI link" in said and "of 64 GB/s from each device, as the profile states" in said


def test_the_slowest_link_holds_up_devices_that_are_not_all_joined_alike() -> None:
    found, said = asked(joined(4, apart=(1, 3)), 4)
    assert found == pytest.approx(32) and "PCIe and xGMI between the devices" in said
    assert asked(joined(4, apart=(1, 3)), 3)[0] == pytest.approx(128)  # devices 0 to 2 are


@pytest.mark.parametrize("devices", [[], joined(1), joined(8, mb_per_s=0)])
def test_without_links_in_the_profile_the_model_of_the_gpu_says_in_amds_words(devices: list[DeviceInfo]) -> None:
    found, said = asked(devices, 8)
    assert found == pytest.approx(448) and "xgmi" in said and "nvlink" not in said and "is assumed" in said


def test_a_network_that_was_named_is_taken_and_links_of_another_make_no_difference() -> None:
    assert asked(joined(8), 8, "infiniband-hdr")[0] == pytest.approx(25)
    assert asked(joined(8), 64)[0] == pytest.approx(50)  # several machines: a rail


@pytest.mark.parametrize(
    "links", [None, {}, [1, {}], [{"device": "1", "type": "xGMI", "mb_per_s": 1}], [{"device": -1}]]
)
def test_links_that_make_no_sense_are_left_out(links: object) -> None:
    assert links_of({"links": links}) == ()
