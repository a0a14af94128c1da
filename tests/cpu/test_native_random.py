"""Programs in C drawn at random, which come to the same operators with the same stack pointer by many ways: every path
of the tree is one that the program went, as often as it did."""

from __future__ import annotations

import platform
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.cpu.conftest import build

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="rules for other processors are not written"),
]

FUNCTIONS = 7
BEGIN = """
#include <alloca.h>
#include <leadline/monitor.h>
#include <stdint.h>
#include <string.h>
typedef void (*emit_t)(const leadline_event*);
static emit_t g_emit;
static char g_log[1 << 22], *g_end = g_log;
static const char* g_path[64];
static int g_depth, g_nested;
static uint32_t g_way;
static uintptr_t g_landing;
const char* log_text(void) { *g_end = 0; return g_log; }
static uint32_t draw(void) { return (g_way = g_way * 1103515245u + 12345u) >> 16; }
static void enter(const char* name) { g_path[g_depth++] = name; }
static void leave(void) { --g_depth; }
static void written(void) {
  for (int i = 0; i < g_depth; ++i) {
    g_end = strcpy(g_end, g_path[i]) + strlen(g_path[i]);
    *g_end++ = i + 1 == g_depth ? '\\n' : ' ';
  }
}
static void down(int depth);
__attribute__((noinline)) void run_op(const char* name) {
  volatile char token = 0;
  leadline_event event = leadline_event_of(LEADLINE_DOMAIN_OPERATOR, LEADLINE_BEGIN);
  enter("run_op");
  enter(name);
  written();
  event.token = (const void*)&token;
  event.of.op.name = name;
  event.of.op.stable_name = 1;
  event.of.op.sequence = -1;
  g_emit(&event);
  if (g_nested < 2 && draw() % 4 == 0) {
    const uintptr_t landing = g_landing;
    ++g_nested;
    g_landing = (uintptr_t)__builtin_frame_address(0) - 16384;
    down(draw() % 4);
    g_landing = landing;
    --g_nested;
  }
  event.phase = LEADLINE_END;
  g_emit(&event);
  leave();
  leave();
}
/* The same stack pointer whichever way it was; what lies between is what earlier calls left there. */
__attribute__((noinline)) void land(void) {
  const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  volatile char* between = alloca((here - g_landing) / 16 * 16);
  __asm__ volatile("" : : "r"(between));
  enter("land");
  run_op(draw() % 4 ? "op" : "other");
  leave();
}
"""
END = """
static void down(int depth) {
  if (depth <= 0) return land();
  switch (draw() % %FUNCTIONS%) { %CASES% }
}
void go(emit_t emit, uint32_t way) {
  g_emit = emit;
  g_way = way;
  g_landing = (uintptr_t)__builtin_frame_address(0) - 65536;
  down(way % 9);
  __asm__ volatile("");
}
"""


def program(seed: int) -> str:
    """Functions with frames of different sizes, some of them moving, each of which calls on from two lines."""
    chance = random.Random(seed)
    source = BEGIN
    for number in range(FUNCTIONS):
        room = chance.choice([8, 24, 24, 40, 200])
        body = {
            "plain": f"volatile char some[{room}]; some[0] = 1;",
            "moving": f"volatile char* some = alloca({room} + depth * 16); some[0] = 1;",
            "aligned": f"volatile char some[{room}] __attribute__((aligned(64))); some[0] = 1;",
        }[chance.choice(["plain", "plain", "moving", "aligned"])]
        call = "if (draw() % 2) down(depth - 1); else { down(depth - 1); some[0] = 3; }"
        source += f"""
__attribute__((noinline)) void f{number}(int depth) {{
  {body}
  enter("f{number}");
  {call}
  leave();
  some[0] = 2;
}}
"""
    cases = " ".join(f"case {number}: f{number}(depth); break;" for number in range(FUNCTIONS))
    return source + END.replace("%FUNCTIONS%", str(FUNCTIONS)).replace("%CASES%", cases)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_paths_of_operators_are_those_that_the_program_went(sample, place, seed) -> None:
    build(place, "ways", program(seed), "-O2", f"-I{Path(__file__).parents[2] / 'native/include'}")
    seen = sample(
        f"""
        import ctypes
        from collections import Counter
        from leadline import _native
        emit = ctypes.cast(ctypes.PyDLL(_native.__file__).leadline_monitor_emit, ctypes.c_void_p)
        program = ctypes.PyDLL("./ways.so")
        program.log_text.restype = ctypes.c_char_p
        for number in range(6000):
            program.go(emit, {seed} + number * 7 % 31 if number % 3 else number)
        print(json.dumps(Counter(program.log_text().decode().splitlines())))
        """,
        "--native",
    )
    tree = seen.profile.tree
    calls = tree.exclusive("call_time").count
    kept = {"land", "run_op", *(f"f{number}" for number in range(FUNCTIONS))}
    found: Counter[str] = Counter()
    for node in tree.walk():
        if node.kind == "operator":
            path = [frame.name for frame in node.path() if frame.kind == "operator" or frame.name in kept]
            found[" ".join(path)] += int(calls[node.row])
    assert found == Counter(seen.said)
    assert len(found) > 500 and max(found.values()) > 100
    assert seen.losses() == {}
