#!/usr/bin/env bash
# One command for a machine with a GPU, on which nothing is compiled: stages in order of their worth.
#
#   bench/gpu/round.sh [--fakes] OUT [STAGE or SET ...]        sets: first, second, third, again; see gpu_round_stages.py
#
# CARRIED names the folder that prepare.sh made (default: .round in the repository); SECONDS_ALLOWED is what it may take
# (default: 280). OUT gets results.jsonl, log.txt, stacks.txt, tables.md and kept.tar.gz, each complete after every step, so
# that a stop at any second costs one step. `gpu_round_pages.py OUT` makes the tables of bench/results of them.
# --fakes rehearses over the fake vendor libraries, which it builds; Leadline is the one of this Python then.
set -uo pipefail

begin=$(date +%s)
fakes=
if [ "${1:-}" = --fakes ]; then
  fakes=1
  shift
fi
if [ $# -lt 1 ]; then
  echo "usage: bench/gpu/round.sh [--fakes] OUT [STAGE or SET ...]" >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
shift
python=$(command -v "${PYTHON:-python3}") || exit 2
python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
carried=${CARRIED:-$root/.round}
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
export PYTHONUNBUFFERED=1 ROUND_CARRIED=$carried
export PYTHONPATH=$root/bench/gpu:$root/bench:$root/bench/whatif${PYTHONPATH:+:$PYTHONPATH}
if [ -n "$fakes" ]; then
  export PYTHONPATH=$PYTHONPATH:$root LEADLINE_BENCH_FAKES=$work/fakes
  mkdir -p "$work/fakes"
  "$python" -c "import sys, pathlib, tests.nvidia.fake_gpu as fakes; fakes.build(pathlib.Path(sys.argv[1]), sys.argv[2])" \
    "$work/fakes" "${CXX:-g++}" >"$out/log.txt" 2>&1 || {
    tail -5 "$out/log.txt" >&2
    exit 2
  }
  if [ ! -e "$carried/lib/libempty_cupti.so" ]; then
    mkdir -p "$work/carried/lib"
    export ROUND_CARRIED=$work/carried
    "${CXX:-g++}" -O1 -std=c++20 -shared -fPIC -I"$root/native" -o "$work/carried/lib/libempty_cupti.so" \
      "$root/bench/gpu/empty_cupti.cpp" -ldl || exit 2
  fi
else
  if [ ! -d "$carried/site/leadline" ]; then
    echo "There is no built package in $carried; make it with bench/gpu/prepare.sh." >&2
    exit 2
  fi
  export PYTHONPATH=$carried/site:$PYTHONPATH
fi
cd "$work" || exit 2
"$python" -m gpu_round "$out" "$work" "$((${SECONDS_ALLOWED:-280} - ($(date +%s) - begin)))" "$@"
