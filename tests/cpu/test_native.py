"""Native frames in their true place between Python frames and operators, on stacks whose shape is known."""

from __future__ import annotations

import platform
import shutil

import pytest
from tests.cpu.conftest import build

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
    assert any(name.startswith(("Py", "_Py")) for name in names), names  # where it is stripped only these have names
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
