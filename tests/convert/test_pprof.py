"""pprof: read back by protobuf with a definition of profile.proto written here, and by speedscope."""

from __future__ import annotations

import gzip
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reread import speedscope_stacks
from samples import deep, model, stacks, strange

from leadline.trace.protobuf import varint

protobuf = pytest.importorskip("google.protobuf", reason="protobuf reads the exports back and is not installed here")

INT, UINT, BOOL, TEXT, MESSAGE = 3, 4, 8, 9, 11

# message -> (field, number, type, repeated, message type): profile.proto of the pprof project
FIELDS = {
    "ValueType": [("type", 1, INT, False, ""), ("unit", 2, INT, False, "")],
    "Label": [("key", 1, INT, False, ""), ("str", 2, INT, False, ""), ("num", 3, INT, False, ""), ("num_unit", 4, INT, False, "")],
    "Sample": [("location_id", 1, UINT, True, ""), ("value", 2, INT, True, ""), ("label", 3, MESSAGE, True, "Label")],
    "Line": [("function_id", 1, UINT, False, ""), ("line", 2, INT, False, ""), ("column", 3, INT, False, "")],
    "Location": [
        ("id", 1, UINT, False, ""), ("mapping_id", 2, UINT, False, ""), ("address", 3, UINT, False, ""),
        ("line", 4, MESSAGE, True, "Line"), ("is_folded", 5, BOOL, False, ""),
    ],
    "Function": [
        ("id", 1, UINT, False, ""), ("name", 2, INT, False, ""), ("system_name", 3, INT, False, ""),
        ("filename", 4, INT, False, ""), ("start_line", 5, INT, False, ""),
    ],
    "Mapping": [("id", 1, UINT, False, "")],
    "Profile": [
        ("sample_type", 1, MESSAGE, True, "ValueType"), ("sample", 2, MESSAGE, True, "Sample"),
        ("mapping", 3, MESSAGE, True, "Mapping"), ("location", 4, MESSAGE, True, "Location"),
        ("function", 5, MESSAGE, True, "Function"), ("string_table", 6, TEXT, True, ""),
        ("drop_frames", 7, INT, False, ""), ("keep_frames", 8, INT, False, ""), ("time_nanos", 9, INT, False, ""),
        ("duration_nanos", 10, INT, False, ""), ("period_type", 11, MESSAGE, False, "ValueType"),
        ("period", 12, INT, False, ""), ("comment", 13, INT, True, ""), ("default_sample_type", 14, INT, False, ""),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def profile_message():
    """The class of profile.proto's Profile, made by the protobuf package."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated, of in fields:
            made = message.field.add(name=field, number=number, type=kind, label=3 if repeated else 1)
            if of:
                made.type_name = f".perftools.profiles.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))


@pytest.fixture
def parsed(profile_message, exported):
    from google.protobuf import unknown_fields

    def parse(profile, metric=None):
        message = profile_message()
        message.ParseFromString(gzip.decompress(exported("pprof", profile, metric)))
        assert not len(unknown_fields.UnknownFieldSet(message)), "a field that profile.proto does not have"
        return message

    return parse


def sample_types(message):
    return [(message.string_table[one.type], message.string_table[one.unit]) for one in message.sample_type]


def read_stacks(message, metric):
    index = [name for name, _ in sample_types(message)].index(metric)
    functions = {one.id: message.string_table[one.name] for one in message.function}
    locations = {one.id: functions[one.line[0].function_id] for one in message.location}
    found = Counter()
    for sample in message.sample:
        if sample.value[index]:
            found[tuple(locations[one] for one in reversed(sample.location_id))] += sample.value[index]
    return found


@pytest.mark.parametrize("make", [model, strange])
def test_every_path_and_metric(make, parsed):
    profile = make()
    message = parsed(profile)
    for info in profile.tree.measured:
        if info.additive:
            assert read_stacks(message, str(info.kind)) == stacks(profile, str(info.kind))


def test_the_tables_are_consistent(parsed):
    message = parsed(model())
    assert message.string_table[0] == ""
    assert len(set(message.string_table)) == len(message.string_table)
    assert sample_types(message) == [
        ("time", "nanoseconds"), ("alloc_bytes", "bytes"), ("gpu_time", "nanoseconds"), ("calls", "count"),
    ]  # fmt: skip
    assert all(len(sample.value) == 4 for sample in message.sample)
    assert message.string_table[message.default_sample_type] == "gpu_time"
    assert all(one.id for one in [*message.location, *message.function])
    used = {one for sample in message.sample for one in sample.location_id}
    assert {one.id for one in message.location} == used


def test_lines_files_and_first_lines(parsed):
    message = parsed(model())
    text = message.string_table
    (function,) = [one for one in message.function if text[one.name] == "main"]
    assert (text[function.filename], function.start_line) == ("/home/ada/my project/train.py", 5)
    assert {one.line[0].line for one in message.location if one.line[0].function_id == function.id} == {9}


def test_labels_say_thread_process_and_rank(parsed):
    message = parsed(model())
    text = message.string_table
    labels = {text[one.key]: text[one.str] or one.num for one in message.sample[0].label}
    assert labels == {"thread": "MainThread", "thread_id": 10, "process_id": 10, "rank": "3"}


def test_times_come_from_meta_and_nonsense_does_not(parsed):
    profile = model()
    profile.meta.update(started_at_ns=1_795_238_400_000_000_000, wall_ns=12_000_000)
    message = parsed(profile)
    assert (message.time_nanos, message.duration_nanos) == (1_795_238_400_000_000_000, 12_000_000)
    profile.meta.update(started_at_ns="soon", wall_ns=-5)
    message = parsed(profile)
    assert (message.time_nanos, message.duration_nanos) == (0, 0)


def test_ten_thousand_frames(parsed):
    message = parsed(deep())
    assert len(message.sample[0].location_id) == 10_002
    assert message.sample[0].value[0] == 5_000


def test_the_same_profile_gives_the_same_bytes(exported):
    assert exported("pprof", model()) == exported("pprof", model())


@pytest.mark.parametrize(("name", "make"), [("model", model), ("strange", strange)])
def test_speedscope_reads_it(name, make, read_by_speedscope):
    document = read_by_speedscope[name, "pprof"]
    metric = {"model": "gpu_time", "strange": "time"}[name]
    assert speedscope_stacks(document) == stacks(make(), metric)


@given(st.integers(-(2**63), 2**64 - 1))
def test_varints(value):
    from google.protobuf.internal.decoder import _DecodeVarint

    decoded, end = _DecodeVarint(varint(value), 0)
    assert decoded == value % 2**64
    assert end == len(varint(value))
