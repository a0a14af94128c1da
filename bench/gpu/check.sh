#!/usr/bin/env bash
# Builds Leadline on a bare CUDA machine without network and checks everything that needs a GPU.
#
#   bench/gpu/check.sh [--fakes] OUT [PART ...]
#
# PART: correctness, cost, whatif, tools (default: correctness cost; the last two want runs of their own; tools leaves
# tools.md and tools.json as well). --fakes rehearses on a
# machine without a GPU: the same steps over the fake vendor libraries of native/testing/nvidia, which it builds too.
#
# Needs python3 with torch (a CUDA build), numpy and rich, CMake, ninja, a C++20 compiler and nanobind. A Python package
# that is missing is taken from wheels in the folder that WHEELS names (default: .whl in the repository), without network.
# Leaves seven files in OUT: summary.md, results.json, doctor.json, build.log, recordings.tar.gz, profiles.tar.gz, logs.tar.gz.
# BUILT names a folder with a built package to check in place of building one.
# Never takes longer than SECONDS_ALLOWED (default 520). Exit status 0: every check that ran passed; 1: one did not; 2: it
# could not be built; 3: there is no GPU (the build and the doctor have run).
set -uo pipefail

fakes=
if [ "${1:-}" = --fakes ]; then
  fakes=1
  shift
fi
if [ $# -lt 1 ]; then
  echo "usage: bench/gpu/check.sh [--fakes] OUT [correctness] [cost] [whatif] [tools]" >&2
  exit 2
fi
begin=$(date +%s)
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
shift
parts=${*:-correctness cost}
for part in $parts; do
  case $part in
    correctness | cost | whatif | tools) ;;
    *)
      echo "There is no part called $part; the parts are correctness, cost, whatif and tools." >&2
      exit 2
      ;;
  esac
done
python=$(command -v "${PYTHON:-python3}") || exit 2
allowed=${SECONDS_ALLOWED:-520}
left() { echo $((begin + allowed - $(date +%s))); }

work=${WORK:-$(mktemp -d)}
site=$work/site
mkdir -p "$site"
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
export PYTHONUNBUFFERED=1

source "$root/bench/gpu/build.sh"
export -f build build_fakes
export root work site python fakes
if ! timeout --kill-after=10 "${BUILD_SECONDS:-240}" bash -c "set -e; build; [ -z '$fakes' ] || build_fakes tests.nvidia.fake_gpu" >"$out/build.log" 2>&1; then
  tail -20 "$out/build.log"
  echo "It could not be built; build.log has the whole output." >&2
  exit 2
fi
echo "build: $(($(date +%s) - begin)) s"

export PYTHONPATH=$site:${BUILT:+$BUILT:}$root/bench/gpu:$root/bench:$root/bench/whatif${PYTHONPATH:+:$PYTHONPATH}
cd "$work" || exit 2
if [ -n "$fakes" ]; then
  export LEADLINE_BENCH_FAKES=$work/fakes PYTHONPATH=$PYTHONPATH:$root
  # Preloaded for the doctor only: a real CUPTI of this machine would be preferred, and does not start with a fake driver.
  LD_LIBRARY_PATH=$work/fakes LD_PRELOAD=$work/fakes/libcupti.so.13 timeout 120 "$python" -m leadline.cli.main doctor --json \
    >"$out/doctor.json" 2>"$work/doctor.log"
else
  timeout 120 "$python" -m leadline.cli.main doctor --json >"$out/doctor.json" 2>"$work/doctor.log"
fi
echo "doctor: status $?"
{
  nvidia-smi
  "$python" -m pip list
  ldconfig -p | grep -E 'cuda|cupti|nvToolsExt'
} >"$work/machine.log" 2>&1 </dev/null

if [ -z "$fakes" ] && ! timeout 120 "$python" -c 'import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)'; then
  echo "There is no GPU that torch can use here; the build and the doctor ran, nothing else could."
  exit 3
fi

# shellcheck disable=SC2086 # parts are words
timeout --kill-after=15 "$(left)" "$python" -m gpu_suite "$out" "$work" "$(($(left) - 15))" $parts
status=$?
cat "$out/summary.md"
[ ! -f "$out/tools.md" ] || cat "$out/tools.md"
echo "all: $(($(date +%s) - begin)) s"
exit $status
