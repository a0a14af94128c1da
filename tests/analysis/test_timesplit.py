"""The split of each thread's time: programs whose truth is known by construction, and what holds for any profile."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.analysis import Analysis
from leadline.analysis.timesplit import PARTS
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder


def splits(text):
    profile = build(text)
    names = [thread.name for thread in profile.threads]
    return {names[split.thread]: split for split in Analysis(profile).time_splits}


def parts(split):
    return {name: value for name, value in split.parts_ns.items() if value}


def main_parts(facts, *tree):
    lines = ["process p | pid=5", f"  thread T | tid=5 wall_ns=1000 {facts}", *("    " + line for line in tree)]
    return parts(splits("\n".join(lines))["T"])


def test_a_loader_that_computes_is_not_python():
    """Operators 200, 500 of decoding on the CPU, 300 asleep: the thread ran for 700."""
    assert main_parts("operator_ns=200 data_ns=500 cpu_ns=700") == {"operators": 200, "data": 500, "idle": 300}


def test_a_loader_that_waits_leaves_python_its_time():
    """Operators 200, 500 of data loading of which 20 ran, 300 of Python."""
    found = main_parts("operator_ns=200 data_ns=500 cpu_ns=520", "phase data loading | running_time=20 time=500")
    assert found == {"operators": 200, "python": 300, "data": 500}


def test_an_engine_without_requests_waits_for_nobody():
    """600 in `no work`, 100 of scheduling, 100 of Python; what the queue's lock took is part of the first."""
    found = main_parts("cpu_ns=100", "phase no work | time=600 wait_time=50", "phase scheduling | time=100")
    assert found == {"python": 100, "no_work": 600, "idle": 300}


def test_operators_of_a_loader_are_not_taken_out_twice():
    """Operators 300, all in data loading, which ran for 400 and lasted 700 with them; Python 200, asleep 100."""
    found = main_parts(
        "operator_ns=300 data_ns=400 cpu_ns=600",
        "phase data loading | running_time=400 time=400",
        "  operator aten::flip | time=300 call_time=300",
    )
    assert found == {"operators": 300, "python": 200, "data": 400, "idle": 100}


def test_operators_that_stand_in_line_for_a_core_leave_python_its_time():
    """Operators last 700 and run for 300 of it, other programs have the core in between; Python ran for 200."""
    facts = "operator_ns=700 cpu_ns=500 operator_running_time=300"
    assert main_parts(facts) == {"operators": 700, "python": 200, "idle": 100}


def test_operators_of_a_loader_that_stand_in_line_are_taken_out_for_what_they_ran():
    """Loading ran for 300, of which its operators 100 in 200; Python ran for 150."""
    found = main_parts(
        "operator_ns=200 data_ns=300 cpu_ns=450 operator_running_time=100",
        "phase data loading | running_time=300 time=300",
        "  operator aten::flip | time=200 call_time=200",
    )
    assert found == {"operators": 200, "python": 150, "data": 300, "idle": 350}


def test_a_spinning_synchronisation_is_a_wait_for_the_device():
    """torch.cuda.synchronize() for 500, spinning; 400 of operators, 50 of Python, 50 asleep."""
    found = main_parts("operator_ns=400 data_ns=0 cpu_ns=950", "api cudaDeviceSynchronize | time=500 sync_time=500")
    assert found == {"operators": 400, "python": 50, "device_wait": 500, "idle": 50}


def test_a_synchronisation_that_sleeps_leaves_python_its_time():
    """As above with cudaDeviceScheduleBlockingSync: 10 of the 500 ran, so of the thread's 460 Python has 50."""
    drawing = "process p | pid=5\n  thread T | tid=5 wall_ns=1000 operator_ns=400 cpu_ns=460\n    "
    (split,) = splits(drawing + "api cudaDeviceSynchronize | time=500 sync_time=500 sync_running_time=10").values()
    assert parts(split) == {"operators": 400, "python": 50, "device_wait": 500, "idle": 50}
    assert split.spun_ns == 10


def test_a_wait_in_an_operator_sleeps_or_spins():
    """`.item()` of 600 that waits 450, of which 50 ran; Python 300: the thread ran for 150 + 50 + 300."""
    found = main_parts(
        "operator_ns=600 data_ns=0 cpu_ns=500",
        "operator aten::item | time=150",
        "  api cudaStreamSynchronize | time=450 sync_time=450 sync_running_time=50",
    )
    assert found == {"operators": 150, "python": 300, "device_wait": 450, "idle": 100}


def test_a_spinning_wait_inside_communication_counts_once():
    """Work.wait() for 400, all of it running, 390 of them in a synchronisation that spins; Python 600."""
    found = main_parts(
        "operator_ns=0 data_ns=0 cpu_ns=1000",
        'region Work.wait | time=10 running_time=400 detail={"role":"communication"}',
        "  api cudaStreamSynchronize | time=390 sync_time=390 sync_running_time=390",
    )
    assert found == {"communication": 10, "device_wait": 390, "python": 600}


def test_where_nobody_measured_it_a_wait_is_taken_for_spinning_and_not_said_to():
    drawing = "process p | pid=5\n  thread T | tid=5 wall_ns=1000 operator_ns=0 cpu_ns=700\n    "
    (split,) = splits(drawing + "api cudaDeviceSynchronize | time=500 sync_time=500").values()
    assert parts(split) == {"python": 200, "device_wait": 500, "idle": 300}
    assert split.spun_ns is None


def test_a_wait_inside_an_operator_is_not_the_operators_work():
    """.item(): an operator of 600 that waits 450 for the device; Python 400."""
    found = main_parts(
        "operator_ns=600 data_ns=0 cpu_ns=1000",
        "operator aten::item | time=150",
        "  api cudaStreamSynchronize | time=450 sync_time=450",
    )
    assert found == {"operators": 150, "python": 400, "device_wait": 450}


def test_a_known_wait_sleeps():
    """An operator of 500 that sleeps 300 of it; Python 100, asleep 400: the thread ran for 300."""
    found = main_parts("operator_ns=500 data_ns=0 cpu_ns=300", "operator aten::something | time=500 wait_time=300")
    assert found == {"operators": 200, "python": 100, "other_wait": 300, "idle": 400}


def test_communication_keeps_its_waits():
    """A collective of 400 that sleeps 250 of it, beside 100 of operators; Python 150: the thread ran for 400."""
    found = main_parts(
        "operator_ns=500 data_ns=0 cpu_ns=400",
        'operator c10d::allreduce_ | time=350 wait_time=250 detail={"role":"communication"}',
        '  operator record_param_comms | time=50 detail={"collective":"allreduce"}',
        "operator aten::add | time=100",
    )
    assert found == {"operators": 100, "python": 150, "communication": 400, "idle": 350}


def test_a_provider_may_name_a_collective_of_any_framework():
    found = main_parts(
        "operator_ns=500 data_ns=0 cpu_ns=500", 'operator horovod | time=500 detail={"collective":"allreduce"}'
    )
    assert found == {"communication": 500, "idle": 500}


def test_a_wait_for_other_ranks_outside_operators_is_communication():
    """Work.wait() for 400 of which 30 ran; operators 100, Python 200, asleep 300."""
    found = main_parts(
        "operator_ns=100 data_ns=0 cpu_ns=330",
        'region Work.wait | time=400 running_time=30 detail={"role":"communication"}',
        "  python all_reduce @ /a/c10d.py:3 | wait_time=370",
        "operator aten::add | time=100",
    )
    assert found == {"operators": 100, "python": 200, "communication": 400, "idle": 300}


def test_what_a_helper_thread_did_for_a_line_is_the_helpers():
    """The main thread launches for 50 and computes for 300; the helper talks for 600, of which 100 ran."""
    found = splits("""
    process p | pid=5
      thread main | tid=5 wall_ns=1000 operator_ns=350 cpu_ns=400
        python step @ /a/t.py:7
          operator c10d::allreduce_ | time=50 detail={"role":"communication"}
            phase on another thread | detail={"thread":"gloo"}
              region gloo:all_reduce | time=600 running_time=100
          operator aten::mm | time=300
      thread gloo | tid=6 wall_ns=1000 cpu_ns=100
    """)
    assert parts(found["main"]) == {"operators": 300, "python": 50, "communication": 50, "idle": 600}
    assert parts(found["gloo"]) == {"communication": 600, "idle": 400}
    assert [place.time_ns for place in found["gloo"].places["communication"]] == [600]


def test_compilation_outside_and_inside_of_operators():
    """Compilation of 600 of which 580 ran, and 100 inside a backward operator of 300; Python 100, asleep 20."""
    found = main_parts(
        "operator_ns=300 data_ns=0 cpu_ns=980",
        "phase compile | time=100 running_time=80",
        "  phase inductor | time=500 running_time=500",
        "operator CompiledFunctionBackward | time=200",
        "  phase compile | time=100 running_time=100",
    )
    assert found == {"operators": 200, "python": 100, "compile": 700}


def test_a_sleeping_main_thread_is_idle():
    assert main_parts("operator_ns=0 data_ns=0 cpu_ns=10") == {"python": 10, "idle": 990}


def test_two_threads_that_fight_for_the_interpreter_are_each_half_idle():
    found = splits("""
    process p | pid=5
      thread A | tid=5 wall_ns=1000 cpu_ns=500
      thread B | tid=6 wall_ns=1000 cpu_ns=500
    """)
    assert [parts(split) for split in found.values()] == [{"python": 500, "idle": 500}] * 2


def test_backward_on_the_devices_thread_is_that_threads_and_a_wait_of_the_main_one():
    """Forward 300 on the main thread, 500 of backward on autograd's, below the main thread's lines; Python 50."""
    found = splits("""
    process p | pid=5
      thread main | tid=5 wall_ns=1000 operator_ns=300 cpu_ns=350
        python step @ /a/t.py:7
          operator aten::mm | time=300
            phase backward
              operator MmBackward0 | time=400
                api cudaStreamSynchronize | time=100 sync_time=100
      thread autograd | tid=6 wall_ns=1000 operator_ns=500 cpu_ns=500
    """)
    assert parts(found["main"]) == {"operators": 300, "python": 50, "other_wait": 500, "idle": 150}
    assert parts(found["autograd"]) == {"operators": 400, "device_wait": 100, "idle": 500}
    assert set(found["main"].estimated) == {"python", "idle", "other_wait"}
    assert [place.time_ns for place in found["autograd"].places["operators"]] == [400]


def test_backward_on_the_thread_itself_stays_its_own():
    found = splits("""
    process p | pid=5
      thread main | tid=5 wall_ns=1000 operator_ns=800 cpu_ns=900
        operator aten::mm | time=300
          phase backward
            operator MmBackward0 | time=500
      thread other | tid=6 wall_ns=1000 operator_ns=100 cpu_ns=100
        operator aten::add | time=100
    """)
    assert parts(found["main"]) == {"operators": 800, "python": 100, "idle": 100}


def test_where_each_part_happened():
    profile = build("""
    process p | pid=5
      thread T | tid=5 wall_ns=1000 operator_ns=0 data_ns=600 cpu_ns=700
        python main @ /a/t.py:1
          phase data loading | time=100
        python main @ /a/t.py:2
          phase data loading | time=500
            python read @ /usr/lib/python3.11/json/decoder.py:3
              region parse | time=50
    """)
    (split,) = Analysis(profile).time_splits
    user = Analysis(profile).scopes.user
    lines = [(profile.tree.node(int(user[place.row])).line, place.time_ns) for place in split.places["data"]]
    assert lines == [(2, 550), (1, 100)]


amount = st.integers(-10, 10**6) | st.integers(0, 2**62)
METRICS = ["time", "sync_time", "sync_running_time", "wait_time", "running_time"]
FRAMES = [
    ("operator", "aten::mm"), ("phase", "on another thread"), ("phase", "backward"), ("phase", "compile"),
    ("phase", "data loading"), ("phase", "forward"), ("api", "cudaStreamSynchronize"), ("region", "r"),
]  # fmt: skip


@st.composite
def profiles(draw):
    builder = ProfileBuilder()
    for number in range(draw(st.integers(1, 2))):
        process = builder.process("p", pid=number)
        for _ in range(draw(st.integers(1, 3))):
            facts = {name: draw(amount) for name in ("wall_ns", "operator_ns", "data_ns", "cpu_ns")}
            thread = builder.thread(process, "T", tid=draw(st.integers(0, 3)), **facts)
            nodes = [builder.node_of_thread(thread)]
            for _ in range(draw(st.integers(0, 6))):
                kind, name = draw(st.sampled_from(FRAMES))
                nodes.append(builder.child(draw(st.sampled_from(nodes)), builder.frame(kind, name)))
                builder.add(nodes[-1], draw(st.sampled_from(METRICS)), draw(amount))
    return builder.profile()


@settings(max_examples=150, deadline=None)
@given(profiles())
def test_whatever_a_file_says_the_parts_add_up_and_none_is_negative(profile):
    for split in Analysis(profile).time_splits:
        assert tuple(split.parts_ns) == PARTS
        assert sum(split.parts_ns.values()) == split.wall_ns == profile.threads[split.thread].wall_ns
        assert min(split.parts_ns.values()) >= 0
        assert split.spun_ns is None or 0 <= split.spun_ns <= split.parts_ns["device_wait"]
        assert set(split.estimated) <= {"python", "idle", "other_wait", "operators"}


def test_a_thousand_processes():
    ranks = "\n".join(
        f"process r{i} | pid={i} rank={i}\n  thread T | tid={i} wall_ns=1000 operator_ns=500 cpu_ns=700\n"
        f"    python main @ /a/t.py:{i}\n      operator aten::mm | time=500"
        for i in range(1, 1001)
    )
    found = Analysis(build(ranks)).time_splits
    assert len(found) == 1000
    assert all(split.parts_ns["python"] == 200 for split in found)


def test_what_a_runtime_did_on_threads_of_its_own_is_no_idleness():
    """A compiled program ran for 700 on a pool while the thread waited for 600 and ran for 100 elsewhere."""
    assert main_parts(
        "cpu_ns=100",
        'phase on another thread | detail={"pool":"XLA"}',
        "  operator dot_general | time=700 call_time=700",
    ) == {"python": 100, "other_wait": 700, "idle": 200}


def test_what_a_compiled_program_ran_on_the_thread_itself_is_not_python():
    assert main_parts("cpu_ns=800", "operator dot_general | time=700 call_time=700") == {
        "operators": 700,
        "python": 100,
        "idle": 200,
    }
