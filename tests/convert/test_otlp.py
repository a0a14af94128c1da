"""OpenTelemetry profiles, read back by the messages of opentelemetry-proto."""

from pathlib import Path

import pytest

import leadline
from leadline.convert import EXPORTERS, export

profiles_pb2 = pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")
service_pb2 = pytest.importorskip("opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2")
OTLP = next(one for one in EXPORTERS if one.name == "otlp")


@pytest.mark.parametrize("message", [profiles_pb2.ProfilesData, service_pb2.ExportProfilesServiceRequest])
def test_a_collector_reads_every_path_and_every_sum(message) -> None:
    profile = leadline.open(Path(__file__).parents[1] / "compat" / "v1-torch.leadline")
    told = message()
    told.ParseFromString(export(profile, OTLP))
    (resource,) = told.resource_profiles
    assert {one.key for one in resource.resource.attributes} <= {"service.name", "host.name"}
    (scope,) = resource.scope_profiles
    words = told.dictionary
    for table in (words.location_table, words.function_table, words.stack_table, words.attribute_table):
        assert table[0] == type(table[0])()  # entry 0 is the empty one
    assert words.string_table[0] == ""
    found = {words.string_table[one.sample_type.type_strindex]: one for one in scope.profiles}
    assert {"time", "alloc_bytes"} <= set(found)
    assert len({bytes(one.profile_id) for one in scope.profiles}) == len(scope.profiles)
    for metric in ("time", "alloc_bytes"):
        sums = profile.tree.exclusive(metric).sum
        assert sum(sample.values[0] for sample in found[metric].samples) == int(sums[sums > 0].sum())
    hottest = profile.tree.hottest("time", 1)[0]
    sample = max(found["time"].samples, key=lambda one: one.values[0])
    places = [words.location_table[at] for at in words.stack_table[sample.stack_index].location_indices]
    functions = [words.function_table[one.lines[0].function_index] for one in places]
    names = [words.string_table[one.name_strindex] for one in functions]
    assert len(names) == len(hottest.path()) - 1  # the root says nothing
    assert hottest.name in names[0]
    keys = {words.string_table[words.attribute_table[at].key_strindex] for at in sample.attribute_indices}
    assert "process.pid" in keys


def test_one_metric() -> None:
    profile = leadline.open(Path(__file__).parents[1] / "compat" / "v1-torch.leadline")
    told = profiles_pb2.ProfilesData()
    told.ParseFromString(export(profile, OTLP, "alloc_bytes"))
    assert len(told.resource_profiles[0].scope_profiles[0].profiles) == 1
