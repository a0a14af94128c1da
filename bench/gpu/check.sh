#!/usr/bin/env bash
# Builds Leadline on a bare CUDA machine without network and checks everything that needs a GPU.
#
#   bench/gpu/check.sh OUT [PART ...]     PART: correctness cost (default: both)
#
# Needs python3 with torch (a CUDA build), numpy, rich and nanobind, CMake, ninja and a C++20 compiler. Leaves in OUT: summary.md,
# results.json, doctor.json, recordings/, and a log per step. Exit status 0: every check that ran passed; 1: one did not;
# 2: it could not be built; 3: there is no GPU (what needs none has run). Takes under nine minutes on one H100-class GPU.
set -uo pipefail

if [ $# -lt 1 ]; then
  echo "usage: bench/gpu/check.sh OUT [correctness] [cost]" >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
parts=${*:-correctness cost}
python=${PYTHON:-python3}
build=${BUILD:-$out/build}
site=$build/site
deadline=$(($(date +%s) + ${SECONDS_ALLOWED:-520}))
left() { echo $((deadline - $(date +%s))); }

# step NAME SECONDS COMMAND...: runs it with its own log, never longer than SECONDS or than there is time left.
step() {
  local name=$1 most=$2 now status begin
  shift 2
  now=$(left)
  [ "$now" -lt "$most" ] && most=$now
  if [ "$most" -lt 5 ]; then
    echo "$name: no time left" | tee "$out/$name.log"
    return 124
  fi
  begin=$(date +%s)
  timeout --kill-after=10 "$most" "$@" >"$out/$name.log" 2>&1
  status=$?
  echo "$name: status $status after $(($(date +%s) - begin)) s"
  return $status
}

mkdir -p "$build" "$site/leadline" "$out/recordings"
compile="cmake -S '$root' -B '$build/native' -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLEADLINE_PYTHON=ON \
  -DLEADLINE_TESTS=OFF -DPython_EXECUTABLE='$("$python" -c 'import sys; print(sys.executable)')' &&
  cmake --build '$build/native' -j '$(nproc)' && cmake --install '$build/native' --prefix '$site' &&
  cp -r '$root/python/leadline/.' '$site/leadline/' && cmake --install '$build/native' --prefix '$site'"
if ! step build 240 bash -c "$compile"; then
  tail -20 "$out/build.log"
  exit 2
fi
export PYTHONPATH=$site:$root/bench/gpu PYTHONUNBUFFERED=1
cd "$out" || exit 2

"$python" -m leadline.cli.main doctor --json >"$out/doctor.json" 2>"$out/doctor.log"
echo "doctor: status $?"

if ! "$python" -c 'import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)'; then
  echo "There is no GPU that torch can use here; the build and the doctor ran, nothing else could."
  exit 3
fi

failed=0
for part in $parts; do
  case $part in
    correctness) step correctness 200 "$python" -m gpu_checks "$out" || failed=1 ;;
    cost) step cost 330 "$python" -m gpu_cost "$out" || failed=1 ;;
    *)
      echo "There is no part called $part; the parts are correctness and cost." >&2
      exit 2
      ;;
  esac
done
"$python" -m gpu_summary "$out"
cat "$out/summary.md"
exit $failed
