#!/usr/bin/env bash
# Makes the folder that a machine with a GPU needs for bench/gpu/round.sh: nothing is compiled or fetched there.
#
#   bench/gpu/prepare.sh FOLDER
#
# FOLDER gets site/ (Leadline for CPython 3.12 on x86-64, and its start in every Python process), lib/ (an empty client
# of CUPTI, empty callbacks of torch, kernels for compute capability 9.0: H100, H200, whose cubin needs nvcc here) and
# wheels of pystack, which reads stacks from outside. HEADERS names the folder with the Python.h of 3.12 where neither
# pyenv nor python3.12 has one; tools/cross_wheels.py says where Debian's are.
# Exits with 1 where it would be larger than 40 MiB.
set -euo pipefail

folder=${1:?usage: bench/gpu/prepare.sh FOLDER}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
python=${PYTHON:-$root/.venv/bin/python}
build=$root/build/round-3.12
headers=${HEADERS:-$(ls -d "$HOME"/.pyenv/versions/3.12.*/include/python3.12 /usr/include/python3.12 2>/dev/null | head -1 || true)}
[ -n "$headers" ] || { echo "There is no Python.h of CPython 3.12 here; name its folder in HEADERS." >&2; exit 2; }

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLEADLINE_PORTABLE=ON -DLEADLINE_TESTS=OFF \
  -DLEADLINE_PYTHON_HEADERS="$headers" -DLEADLINE_PYTHON_SOABI=cpython-312-x86_64-linux-gnu \
  -DPython_EXECUTABLE="$python" >/dev/null
cmake --build "$build" -j "${JOBS:-2}"
rm -rf "$folder/site" "$folder/lib"
mkdir -p "$folder/site/leadline" "$folder/lib"
(cd "$root/python/leadline" && tar c --exclude='*.so' --exclude=__pycache__ .) | tar x -C "$folder/site/leadline"
cmake --install "$build" --prefix "$folder/site" --strip >/dev/null

# What a folder on PYTHONPATH has no .pth file for: measuring that starts with a process, and stacks on a signal.
cat >"$folder/site/sitecustomize.py" <<'PYTHON'
import os

if os.environ.get("ROUND_STACKS"):
    import faulthandler
    import signal

    _stacks = open(f"{os.environ['ROUND_STACKS']}/{os.getpid()}.txt", "w")
    faulthandler.register(signal.SIGUSR2, _stacks, all_threads=True)
    faulthandler.enable(_stacks)
if os.environ.get("LEADLINE"):
    import leadline._autostart
PYTHON

compiler=${CXX:-g++}
"$compiler" -O2 -std=c++20 -shared -fPIC -static-libstdc++ -static-libgcc -I"$root/native" \
  -o "$folder/lib/libempty_cupti.so" "$root/bench/gpu/empty_cupti.cpp" -ldl
"$compiler" -O2 -std=c++17 -shared -fPIC -static-libgcc -o "$folder/lib/libfloor.so" "$root/bench/floor.cpp" -ldl
if command -v nvcc >/dev/null; then
  nvcc -arch=sm_90 -lineinfo -O3 -cubin -o "$folder/lib/kernels.cubin" "$root/bench/gpu/gpu_kernels.cu"
else
  echo "There is no nvcc here, so there are no kernels: the stages instructions and counters cannot run." >&2
fi
if [ ! -d "$folder/site/pystack" ]; then
  "$python" -m pip install -q --no-deps --no-compile --only-binary=:all: --python-version 3.12 --implementation cp \
    --abi abi3 --abi cp312 --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    --target "$folder/site" pystack ||
    echo "pystack could not be had: native stacks come from the debugger alone." >&2
fi
git -C "$root" rev-parse HEAD >"$folder/commit" 2>/dev/null || true
megabytes=$(du -sm "$folder" | cut -f1)
echo "$folder: $megabytes MiB"
[ "$megabytes" -le 40 ]
