"""A tool's `gpu` text on the CPU: compiled by the machine's C++ compiler, run over what an operator wrote.

The text sees each element as a store: `LL_STORE(a) { ... ll_count(a.object); }`. Its compiler's message is what a
person reads when it does not compile.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from leadline.tools.backends.values import is_eight_bit_float
from leadline.tools.errors import ToolError

_HEADER = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
struct ll_object { int is_float; uint64_t* counted; };
struct ll_access { ll_object object; uint64_t address; uint32_t bytes; double value; };
static inline bool ll_is_float(const ll_object& object) { return object.is_float != 0; }
static inline bool ll_isnan(const ll_access& a) { return std::isnan(a.value); }
static inline bool ll_isinf(const ll_access& a) { return std::isinf(a.value); }
static inline void ll_count(const ll_object& object) { ++*object.counted; }
#define LL_STORE(a) static inline void ll_on_store([[maybe_unused]] const ll_access& a)
"""
_FOOTER = r"""
static inline double ll_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}
static inline double ll_bfloat(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
template <typename T, typename Read>
static uint64_t ll_each(const T* data, int64_t elements, int is_float, const Read& read) {
  uint64_t counted = 0;
  const ll_object object{is_float, &counted};
  for (int64_t i = 0; i < elements; ++i)
    ll_on_store(ll_access{object, reinterpret_cast<uint64_t>(data + i), sizeof(T), read(data[i])});
  return counted;
}
// `table`: what each value of a byte stands for, where it is a float of eight bits.
extern "C" int64_t ll_run(const void* data, int64_t elements, int type, const double* table) {
  const auto looked_up = [table](uint8_t bits) { return table[bits]; };
  const auto plain = [](auto value) { return static_cast<double>(value); };
  switch (type) {
    case 0: return ll_each(static_cast<const float*>(data), elements, 1, plain);
    case 1: return ll_each(static_cast<const double*>(data), elements, 1, plain);
    case 2: return ll_each(static_cast<const uint16_t*>(data), elements, 1, ll_half);
    case 3: return ll_each(static_cast<const uint16_t*>(data), elements, 1, ll_bfloat);
    case 4: return ll_each(static_cast<const int8_t*>(data), elements, 0, plain);
    case 5: return ll_each(static_cast<const uint8_t*>(data), elements, 0, plain);
    case 6: return ll_each(static_cast<const int16_t*>(data), elements, 0, plain);
    case 7: return ll_each(static_cast<const int32_t*>(data), elements, 0, plain);
    case 8: return ll_each(static_cast<const int64_t*>(data), elements, 0, plain);
    case 9: return ll_each(static_cast<const uint16_t*>(data), elements, 0, plain);
    case 10: return ll_each(static_cast<const uint32_t*>(data), elements, 0, plain);
    case 11: return ll_each(static_cast<const uint64_t*>(data), elements, 0, plain);
    case 12: return ll_each(static_cast<const uint8_t*>(data), elements, 1, looked_up);
  }
  return 0;
}
"""
_TYPES = {
    "torch.float32": 0,
    "torch.float64": 1,
    "torch.float16": 2,
    "torch.bfloat16": 3,
    "torch.int8": 4,
    "torch.uint8": 5,
    "torch.bool": 5,
    "torch.int16": 6,
    "torch.int32": 7,
    "torch.int64": 8,
    "torch.uint16": 9,
    "torch.uint32": 10,
    "torch.uint64": 11,
}
_BY_TABLE = 12


class HostText:
    """A compiled text."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._run = library.ll_run
        self._run.restype = ctypes.c_int64
        self._run.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_void_p)
        self._tables: dict[Any, Any] = {}

    def why_not(self, tensor: Any) -> str:
        """Why the text cannot read a tensor, or empty."""
        if tensor.device.type != "cpu" or hasattr(tensor, "fake_mode"):
            return "not on the CPU"
        known = str(tensor.dtype) in _TYPES or is_eight_bit_float(tensor)
        return "" if known else f"values of the type {str(tensor.dtype).removeprefix('torch.')}"

    def count(self, tensor: Any) -> int:
        """How often the text counted over the elements of a tensor that it can read."""
        data = tensor.detach().contiguous()
        kind, table = _TYPES.get(str(tensor.dtype), _BY_TABLE), None
        if kind == _BY_TABLE:
            table = self._tables.get(tensor.dtype)
            if table is None:
                torch: Any = sys.modules["torch"]
                table = torch.arange(256, dtype=torch.uint8).view(tensor.dtype).double()
                self._tables[tensor.dtype] = table
        return int(self._run(data.data_ptr(), data.numel(), kind, None if table is None else table.data_ptr()))


def compile_text(tool: str, text: str) -> HostText:
    """Compile, or take from the cache; raises ToolError with the compiler's first message and its line."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise ToolError(
            f"The tool {tool} has a `gpu` text, which needs a C++ compiler on the CPU; install g++ or set CXX."
        )
    if "LL_STORE" not in text:
        raise ToolError(f"The `gpu` text of the tool {tool} has no LL_STORE(a) {{ ... }}; nothing would be counted.")
    source = f'{_HEADER}\n#line 1 "{tool}.gpu"\n{text}\n#line 1 "leadline"\n{_FOOTER}'
    digest = hashlib.sha256(f"{compiler}\n{source}".encode()).hexdigest()[:24]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leadline" / "tools"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="leadline-"))
    library = folder / f"{digest}.so"
    if not library.is_file():
        _compile(compiler, source, library, tool)
    return HostText(ctypes.CDLL(str(library)))


def _compile(compiler: str, source: str, library: Path, tool: str) -> None:
    made = library.with_suffix(f".{os.getpid()}.so")
    command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(made)]
    # The variables of the session would make a compiler wrapper that is a Python program measure itself.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    try:
        done = subprocess.run(
            command, input=source, capture_output=True, text=True, timeout=120, check=False, env=clean
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"The `gpu` text of the tool {tool} could not be compiled: {error}.") from None
    if done.returncode != 0:
        message = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr.strip()[:200])
        raise ToolError(f"The `gpu` text of the tool {tool} does not compile: {message}.")
    made.replace(library)  # whole or not there, also where two processes compile the same
