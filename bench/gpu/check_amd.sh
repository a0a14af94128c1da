#!/usr/bin/env bash
# Builds Leadline on a machine with an AMD GPU and ROCm 6.2 or later, without network, and checks what it measures there.
#
#   bench/gpu/check_amd.sh [--fakes] OUT
#
# --fakes rehearses on a machine without a GPU, over the fake vendor libraries of native/testing/amd, which it builds too.
# Needs python3 with numpy and rich, CMake, ninja, a C++20 compiler and nanobind (missing Python packages: wheels in the
# folder that WHEELS names, as for check.sh); the kernels are compiled by ROCm's own hiprtc. BUILT names a folder with a
# built package to check in place of building one. Leaves in OUT: summary.md, results.json, doctor.json, machine.log,
# build.log, run.log, amd.leadline, and recording (the stream of calls and records, for tests on real data); counted.leadline
# with hardware counters and, where ROCPROFILER_PC_SAMPLING_BETA_ENABLED is set, sampled.leadline with instructions.
# Exit status 0: every check passed; 1: one did not; 2: it could not be built; 3: there is no GPU.
set -uo pipefail

fakes=
if [ "${1:-}" = --fakes ]; then
  fakes=1
  shift
fi
if [ $# -ne 1 ]; then
  echo "usage: bench/gpu/check_amd.sh [--fakes] OUT" >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
python=$(command -v "${PYTHON:-python3}") || exit 2
work=${WORK:-$(mktemp -d)}
site=$work/site
mkdir -p "$site"
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
export PYTHONUNBUFFERED=1
source "$root/bench/gpu/build.sh"
export -f build build_fakes
export root work site python fakes
if ! timeout --kill-after=10 "${BUILD_SECONDS:-480}" bash -c "set -e; build; [ -z '$fakes' ] || build_fakes tests.amd.fake_gpu" \
  >"$out/build.log" 2>&1; then
  tail -20 "$out/build.log"
  echo "It could not be built; build.log has the whole output." >&2
  exit 2
fi
export PYTHONPATH=$site:${BUILT:+$BUILT:}$root${PYTHONPATH:+:$PYTHONPATH}
cd "$work" || exit 2
if [ -n "$fakes" ]; then
  export FAKES=$work/fakes LD_LIBRARY_PATH=$work/fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
timeout 120 "$python" -m leadline doctor --json >"$out/doctor.json" 2>"$work/doctor.log"
echo "doctor: status $?"
{
  rocminfo
  rocm-smi --showproductname --showdriverversion --showtopo
  cat /opt/rocm/.info/version
  ldconfig -p | grep -E 'rocprofiler|roctx|amdhip|hsa-runtime'
} >"$out/machine.log" 2>&1 </dev/null
if [ -z "$fakes" ] && [ ! -e /dev/kfd ]; then
  echo "There is no AMD GPU here (no /dev/kfd); the build and the doctor ran, nothing else could."
  exit 3
fi
LEADLINE_GPU_RECORDING=$out/recording timeout --kill-after=10 "${RUN_SECONDS:-180}" "$python" -m leadline run \
  -o "$out/amd.leadline" "$root/bench/gpu/amd_program.py" "$work/truth.json" >"$out/run.log" 2>&1
echo "run: status $?"
# The same program again, with counters, and with samples of instructions where that is permitted.
if [ -n "$fakes" ]; then
  export FAKE_COUNTERS="turns,OccupancyPercent,50 turns,FETCH_SIZE,8" FAKE_SAMPLES="turns,64,3,8"
  export ROCPROFILER_PC_SAMPLING_BETA_ENABLED=1
fi
export AMD_PROGRAM_PAUSE=1
timeout --kill-after=10 "${RUN_SECONDS:-180}" "$python" -m leadline run --gpu-metrics occupancy,dram --budget 100% \
  -o "$out/counted.leadline" "$root/bench/gpu/amd_program.py" "$work/counted.json" >"$out/counted.log" 2>&1
echo "counters: status $?"
if [ -n "${ROCPROFILER_PC_SAMPLING_BETA_ENABLED:-}" ]; then
  timeout --kill-after=10 "${RUN_SECONDS:-180}" "$python" -m leadline run --instructions --budget 100% \
    -o "$out/sampled.leadline" "$root/bench/gpu/amd_program.py" "$work/sampled.json" >"$out/sampled.log" 2>&1
  echo "instructions: status $?"
else
  echo "instructions: not sampled, set ROCPROFILER_PC_SAMPLING_BETA_ENABLED=1 where a frozen device does no harm"
fi
exec timeout 120 "$python" "$root/bench/gpu/amd_checks.py" "$out" "$work/truth.json"
