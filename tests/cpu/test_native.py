"""Native frames in their true place between Python frames and operators, on stacks whose shape is known."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="rules for other processors are not written"),
]

CHAIN = """
#include <time.h>
typedef void (*callback)(void);
static double cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) void chain_leaf(double seconds) {
  volatile unsigned long n = 0;
  for (double begin = cpu(); cpu() - begin < seconds;) for (int i = 0; i < 20000; ++i) n += i;
}
__attribute__((noinline)) void chain_middle(callback call, double seconds) {
  if (call) call(); else chain_leaf(seconds);
  __asm__ volatile("");
}
void chain_outer(callback call, double seconds) {
  chain_middle(call, seconds);
  __asm__ volatile("");
}
"""


def build(place, name: str, source: str, *options: str) -> None:
    (place.folder / f"{name}.c").write_text(source)
    command = ["cc", "-O1", "-shared", "-fPIC", *options, f"{name}.c", "-o", f"{name}.so"]
    subprocess.run(command, cwd=place.folder, check=True)


def paths(seen) -> dict[tuple[str, ...], int]:
    """CPU nanoseconds by path: names of Python, native, operator and region frames, root first."""
    tree = seen.profile.tree
    own = tree.exclusive("cpu_sample").sum
    found: dict[tuple[str, ...], int] = {}
    for node in tree.walk():
        if own[node.row]:
            shown = tuple(n.name for n in node.path() if n.kind in ("python", "native", "operator", "region"))
            found[shown] = found.get(shown, 0) + int(own[node.row])
    return found


def below(seen, *names: str) -> int:
    """Nanoseconds on paths that hold these frames in this order, one directly below the other."""
    return sum(
        ns for path, ns in paths(seen).items() if any(path[i : i + len(names)] == names for i in range(len(path)))
    )


def test_native_frames_stand_between_the_python_frames_that_called_and_were_called(sample, place) -> None:
    build(place, "chain", CHAIN)
    seen = sample(
        """
        import ctypes
        chain = ctypes.PyDLL("./chain.so")
        CALLBACK = ctypes.CFUNCTYPE(None)
        chain.chain_outer.argtypes = [CALLBACK, ctypes.c_double]
        def back_in_c():
            chain.chain_outer(CALLBACK(0), 0.4)
        def callback():
            back_in_c()
        def caller():
            chain.chain_outer(CALLBACK(callback), 0)
        caller()
        """,
        "--native",
    )
    assert below(seen, "chain_outer", "chain_middle", "chain_leaf") > 0.35e9
    one = max(paths(seen), key=lambda path: paths(seen)[path] if "chain_leaf" in path else 0)
    mine = [name for name in one if name.startswith("chain_") or name in ("caller", "callback", "back_in_c")]
    chain = ["chain_outer", "chain_middle"]
    assert mine == ["caller", *chain, "callback", "back_in_c", *chain, "chain_leaf"]
    assert not any("PyEval" in name or "PyObject" in name for name in one)
    assert seen.losses() == {}


def test_frames_of_the_interpreter_are_there_when_asked_for(sample, place) -> None:
    seen = sample("sorted(range(10), key=lambda n: spin(0.03))", "--native=all")
    names = {name for path in paths(seen) for name in path}
    assert any("sort" in name.lower() for name in names), names
    assert any(name == "spin" for name in names)
    assert "_PyEval_EvalFrameDefault" not in names  # it is its Python frames


def test_code_without_unwind_information_is_marked_and_keeps_its_callers(sample, place) -> None:
    silent = CHAIN.replace("chain_", "silent_")
    build(place, "silent", silent, "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fomit-frame-pointer")
    seen = sample(
        """
        import ctypes, leadline
        silent = ctypes.PyDLL("./silent.so")
        silent.silent_outer.argtypes = [ctypes.c_void_p, ctypes.c_double]
        def caller():
            with leadline.region("inside"):
                silent.silent_outer(None, 0.4)
        caller()
        """,
        "--native",
    )
    inside = {path: ns for path, ns in paths(seen).items() if "inside" in path}  # imports may meet such code, too
    marked = {path: ns for path, ns in inside.items() if "[no unwind information]" in path}
    assert sum(marked.values()) > 0.2e9
    for path in marked:
        place_of_mark = path.index("[no unwind information]")
        assert path[place_of_mark - 1] in ("caller", "inside"), path
        assert not {"caller", "inside", "<module>"} & set(path[place_of_mark + 1 :]), path
    assert seen.below("inside") == pytest.approx(0.4e9, rel=0.1)


def test_operators_hold_their_native_frames_and_no_others(sample) -> None:
    pytest.importorskip("torch", reason="needs torch")
    seen = sample(
        """
        import torch
        torch.set_num_threads(1)
        a = torch.ones(300, 300)
        def products():
            begin = time.thread_time()
            while time.thread_time() - begin < 0.5:
                a @ a
        products()
        """,
        "--native",
    )
    of_product = {path: ns for path, ns in paths(seen).items() if "aten::mm" in path and "products" in path}
    whole = sum(of_product.values())
    assert whole > 0.35e9
    inside = {path: path[path.index("aten::mm") + 1 :] for path in of_product}
    assert sum(ns for path, ns in of_product.items() if inside[path]) > 0.9 * whole
    assert (
        sum(ns for path, ns in of_product.items() if any("gemm" in name.lower() for name in inside[path])) > 0.6 * whole
    )
    for path in of_product:  # between the line and its outermost operator stands torch's binding, and no interpreter
        binding = path[
            path.index("products") + 1 : path.index(next(name for name in path if name.startswith("aten::")))
        ]
        assert binding and all("at::" in name or "torch::" in name or "c10::" in name for name in binding), path
    assert not any("RecordFunction" in name for names in inside.values() for name in names if "callback" in name)


def test_samples_in_kernels_without_unwind_information_reach_their_operator(sample) -> None:
    pytest.importorskip("torch", reason="needs torch")
    seen = sample(
        """
        import torch
        torch.set_num_threads(1)
        images, wide = torch.randn(4, 16, 48, 48), torch.randn(64, 2048)
        layer = torch.nn.Conv2d(16, 16, 3)
        def of_onednn():
            layer(images).square().mean().backward()
        def of_mkl():
            torch.fft.rfft(wide), torch.tanh(wide), torch.log(wide.abs())
        for work in (of_onednn, of_mkl):
            begin = time.process_time()
            while time.process_time() - begin < 0.8:
                work()
        """,
        "--native",
        hz=500,
    )
    tree = seen.profile.tree
    samples = tree.exclusive("cpu_sample").count
    inside, cut = 0, 0
    for node in tree.walk():
        path = list(node.path())
        operators = [at for at, frame in enumerate(path) if frame.kind == "operator"]
        if operators and samples[node.row]:
            inside += int(samples[node.row])
            marked = any(frame.name == "[no unwind information]" for frame in path[operators[-1] :])
            cut += int(samples[node.row]) if marked else 0
    assert inside > 150
    assert cut <= 0.05 * inside


def test_threads_of_libraries_have_native_frames_only(sample, place) -> None:
    build(
        place,
        "worker",
        CHAIN
        + """
        #include <pthread.h>
        static void* work(void* none) { chain_outer(0, 0.4); return none; }
        void run(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); }
        """,
        "-pthread",
    )
    seen = sample("import ctypes\nctypes.CDLL('./worker.so').run()", "--native")
    assert below(seen, "work", "chain_outer", "chain_middle", "chain_leaf") > 0.35e9
    path = next(path for path in paths(seen) if "chain_leaf" in path)
    assert path[0] == "work"  # neither clone nor start_thread


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
    assert seen.losses() == {}


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
    found = {}
    for node in seen.profile.tree.walk():
        path = [frame.name for frame in node.path()]
        if node.name == "aten::mul" and "Twice.backward" in path:
            found["backward"] = path
        elif node.name == "aten::clamp":
            found["hook"] = path
        elif node.name == "torch::autograd::AccumulateGrad":
            found["engine"] = path
    backward, hook, engine = found["backward"], found["hook"], found["engine"]
    assert backward.index("TwiceBackward") < backward.index("torch::autograd::PyNode::apply")
    assert backward.index("torch::autograd::PyNode::apply") < backward.index("Twice.backward")
    evaluated = next(at for at, name in enumerate(hook) if name.startswith("autograd::engine::evaluate_function"))
    between = hook[evaluated + 1 : hook.index("hook")]
    assert "torch::autograd::PyFunctionTensorPreHook::operator()" in between, hook
    wrapper = next(at for at, name in enumerate(engine) if name.startswith("autograd::engine::evaluate_function"))
    assert "torch::autograd::Engine::thread_main" in engine[:wrapper], engine
    assert seen.losses() == {}


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
