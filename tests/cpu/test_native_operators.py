"""Native frames above operators and Python that C calls, on the paths of the tree."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

import pytest
from tests.cpu.conftest import build

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="rules for other processors are not written"),
]

OPERATORS = """
#include <leadline/monitor.h>
typedef void (*emit_t)(const leadline_event*);
typedef void (*callback)(void);
__attribute__((noinline)) void run_op(emit_t emit, const char* name, callback inside) {
  volatile char token = 0;
  leadline_event event = leadline_event_of(LEADLINE_DOMAIN_OPERATOR, LEADLINE_BEGIN);
  event.token = (const void*)&token;
  event.of.op.name = name;
  event.of.op.sequence = -1;
  emit(&event);
  if (inside) inside();
  event.phase = LEADLINE_END;
  emit(&event);
}
static emit_t g_emit;
static callback g_back;
__attribute__((noinline)) void inner_call(void) { run_op(g_emit, "inner", g_back); __asm__ volatile(""); }
__attribute__((noinline)) void middle_call(void) { run_op(g_emit, "outer", inner_call); __asm__ volatile(""); }
void outer_call(emit_t emit, callback back) { g_emit = emit; g_back = back; middle_call(); __asm__ volatile(""); }
void last_call(emit_t emit) { run_op(emit, "last", 0); __asm__ volatile(""); }
"""


def test_operators_stand_below_the_native_frames_that_called_them(sample, place) -> None:
    build(place, "operators", OPERATORS, f"-I{Path(__file__).parents[2] / 'native/include'}")
    seen = sample(
        """
        import ctypes
        from leadline import _native
        emit = ctypes.cast(ctypes.PyDLL(_native.__file__).leadline_monitor_emit, ctypes.c_void_p)
        chain = ctypes.PyDLL("./operators.so")
        BACK = ctypes.CFUNCTYPE(None)
        def back():
            chain.last_call(emit)
        def caller():
            chain.outer_call(emit, BACK(back))
        for _ in range(50):
            caller()
        """,
        "--native",
    )
    tree = seen.profile.tree
    calls = tree.exclusive("call_time").count
    found = {
        node.name: ([n.name for n in node.path() if n.kind in ("python", "native", "operator")], int(calls[node.row]))
        for node in tree.walk()
        if node.kind == "operator"
    }
    outer, inner, last = (found[name][0] for name in ("outer", "inner", "last"))
    assert outer[-4:] == ["outer_call", "middle_call", "run_op", "outer"], outer
    assert outer[outer.index("caller") - 1] == "<module>"
    assert inner == [*outer, "inner_call", "run_op", "inner"]
    assert last[: len(inner)] == inner
    called = last[len(inner) :]
    assert called.index("back") > 0, last  # what called Python back stands before it
    assert [name for name in called if name in ("back", "last_call", "run_op", "last")] == [
        "back",
        "last_call",
        "run_op",
        "last",
    ]
    assert {name: count for name, (_, count) in found.items()} == {"outer": 50, "inner": 50, "last": 50}
    assert not any("leadline" in name.lower() for path, _ in found.values() for name in path)


TWO_PLACES = """
typedef void (*callback)(void);
__attribute__((noinline)) static void first_place(callback call) { call(); __asm__ volatile(""); }
__attribute__((noinline)) static void second_place(callback call) { call(); __asm__ volatile(""); }
void call_twice(callback call) { first_place(call); second_place(call); __asm__ volatile(""); }
"""


def test_python_called_from_two_places_in_c_for_one_line_has_the_callers_of_each_call(sample, place) -> None:
    build(place, "operators", OPERATORS, f"-I{Path(__file__).parents[2] / 'native/include'}")
    build(place, "places", TWO_PLACES)
    seen = sample(
        """
        import ctypes
        from leadline import _native
        emit = ctypes.cast(ctypes.PyDLL(_native.__file__).leadline_monitor_emit, ctypes.c_void_p)
        operators = ctypes.PyDLL("./operators.so")
        places = ctypes.PyDLL("./places.so")
        def back():
            operators.last_call(emit)
        call = ctypes.CFUNCTYPE(None)(back)
        def directly():
            for called in [places.call_twice, lambda call: call(), lambda call: back()] * 20:
                called(call)
        for _ in range(20):
            places.call_twice(call)
        directly()
        """,
        "--native",
    )
    tree = seen.profile.tree
    calls = tree.exclusive("call_time").count
    found: dict[str, int] = {}
    for node in tree.walk():
        if node.name == "last" and node.kind == "operator":
            names = [frame.name for frame in node.path()]
            via = [name for name in names if name in ("first_place", "second_place")]
            assert len(via) <= 1 and names.count("call_twice") == len(via), names
            found["".join(via)] = found.get("".join(via), 0) + int(calls[node.row])
    assert found == {"first_place": 40, "second_place": 40, "": 40}, found


def test_operators_of_torch_have_native_callers_and_lose_nothing(sample) -> None:
    pytest.importorskip("torch", reason="needs torch")
    program = """
        import torch
        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16))
        for _ in range(20):
            model(torch.ones(4, 16)).sum().backward()
        """

    def calls(seen) -> dict[str, int]:
        tree = seen.profile.tree
        counts = tree.exclusive("call_time").count
        sums: dict[str, int] = {}
        for node in tree.walk():
            if node.kind == "operator":
                sums[node.name] = sums.get(node.name, 0) + int(counts[node.row])
        return sums

    plain = calls(sample(program))
    seen = sample(program, "--native")
    assert calls(seen) == plain
    inner = next(node for node in seen.profile.tree.walk() if node.name == "aten::addmm")
    names = [node.name for node in inner.path()]
    between = names[names.index("aten::linear") + 1 : -1]
    assert "at::native::linear" in between and not any("RecordFunction" in name for name in between), names
    kinds = [node.kind for node in inner.path()]
    assert kinds[names.index("aten::linear") - 1] == "native"  # Python called it through its binding
    assert seen.losses().keys() <= {"samples_missing"}  # CPU time of threads that lived too short for a sample


def test_what_autograd_calls_in_python_stands_below_the_native_frames_that_called_it(sample) -> None:
    pytest.importorskip("torch", reason="needs torch")
    seen = sample(
        """
        import torch
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, gradient):
                return gradient * 2
        def hook(gradient):
            return gradient.clamp(-1, 1)
        weight = torch.ones(8, requires_grad=True)
        for _ in range(20):
            middle = torch.sin(weight)
            middle.register_hook(hook)
            Twice.apply(middle).sum().backward()
        """,
        "--native",
    )
    function = "Twice.backward" if sys.version_info >= (3, 11) else "backward"  # 3.10 keeps no qualified names
    found = {}
    for node in seen.profile.tree.walk():
        path = [frame.name for frame in node.path()]
        if node.name == "aten::mul" and function in path:
            found["backward"] = path
        elif node.name == "aten::clamp":
            found["hook"] = path
        elif node.name == "torch::autograd::AccumulateGrad":
            found["engine"] = path
    backward, hook, engine = found["backward"], found["hook"], found["engine"]
    assert backward.index("TwiceBackward") < backward.index("torch::autograd::PyNode::apply")
    assert function in backward[backward.index("torch::autograd::PyNode::apply") :]
    evaluated = next(at for at, name in enumerate(hook) if name.startswith("autograd::engine::evaluate_function"))
    between = hook[evaluated + 1 : hook.index("hook")]
    assert "torch::autograd::PyFunctionTensorPreHook::operator()" in between, hook
    wrapper = next(at for at, name in enumerate(engine) if name.startswith("autograd::engine::evaluate_function"))
    assert "torch::autograd::Engine::thread_main" in engine[:wrapper], engine
    assert seen.losses().keys() <= {"samples_missing"}  # CPU time of threads that lived too short for a sample


def test_a_call_path_that_is_asked_for_in_c_has_native_frames(sample, place) -> None:
    source = """
    #include <leadline/monitor.h>
    typedef leadline_status (*get_t)(uint32_t, leadline_frame*, size_t*);
    static leadline_frame g_frames[64];
    static size_t g_count;
    __attribute__((noinline)) void asks(get_t get) {
      g_count = 64;
      if (get(LEADLINE_SOURCE_NATIVE | LEADLINE_SOURCE_PYTHON, g_frames, &g_count) != LEADLINE_OK) g_count = 0;
    }
    __attribute__((noinline)) void between(get_t get) { asks(get); __asm__ volatile(""); }
    size_t count(get_t get) { between(get); return g_count; }
    const char* name(size_t i) { return g_frames[i].name; }
    """
    build(place, "asking", source, f"-I{Path(__file__).parents[2] / 'native/include'}")
    seen = sample(
        """
        import ctypes
        from leadline import _native
        get = ctypes.cast(ctypes.PyDLL(_native.__file__).leadline_callpath_get, ctypes.c_void_p)
        asking = ctypes.PyDLL("./asking.so")
        asking.name.restype = ctypes.c_char_p
        def caller():
            number = asking.count(get)
            return [asking.name(i).decode() for i in range(number)]
        print(json.dumps(caller()))
        """,
        "--native",
    )
    after = seen.said[seen.said.index("caller") + 1 :]
    assert [name.partition("+")[0] for name in after][-3:] == ["asking.so"] * 3, after
    assert not any(name.startswith("_native") for name in after), after


def test_what_torch_does_in_order_to_be_observed_is_leadlines_share(sample) -> None:
    pytest.importorskip("torch", reason="needs torch")
    seen = sample(
        """
        import torch
        torch.set_num_threads(1)
        one = torch.ones(1)
        begin = time.thread_time()
        while time.thread_time() - begin < 3:
            for _ in range(100):
                one.neg().abs()
        """,
        "--native",
        hz=999,
    )
    tree = seen.profile.tree
    whole = tree.inclusive("cpu_sample").sum
    spent = {node.name: 0 for node in tree.walk() if whole[node.row]}
    for node in tree.walk():
        if node.name not in {above.name for above in node.path()[:-1]}:
            spent[node.name] = spent.get(node.name, 0) + int(whole[node.row])
    observing = [name for name in spent if "at::RecordFunction::" in name or "runRecordFunction" in name]
    assert observing == []
    assert spent["[Leadline]"] > 0.05 * seen.total_ns, spent
    assert all("[Leadline]" not in {above.name for above in node.path()[:-1]} for node in tree.walk())
    own = [node for node in tree.walk() if node.name == "[Leadline]" and whole[node.row]]
    assert not any(node.children for node in own)
    assert any("aten::neg" in {above.name for above in node.path()} for node in own)
