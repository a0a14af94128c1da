#!/usr/bin/env bash
# system_packages.sh build|test|vscode|bare: install the Debian/Ubuntu packages that are missing; nothing is done where all are there.
# A package counts as present when its program or file is found, so other ways of installing are accepted.
set -euo pipefail

missing=()
need_program() { command -v "$1" >/dev/null || missing+=("$2"); }
need_file() { [ -e "$1" ] || missing+=("$2"); }
need_library() { grep -q "$1" <<<"$(/sbin/ldconfig -p)" || missing+=("$2"); }

python="${PYTHON:-python3}"
need_program g++ g++
need_program cmake cmake
need_program ninja ninja-build
need_program "$python" python3
if command -v "$python" >/dev/null; then
  "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  "$python" -c 'import sysconfig, os, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
    || missing+=(python3-dev)
else
  missing+=(python3-venv python3-dev)
fi
if [ "${1:-build}" = test ]; then
  need_file /usr/include/doctest/doctest.h doctest-dev
  need_program ccache ccache
  need_program clang-format clang-format
  need_program aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
  need_program qemu-aarch64 qemu-user
  need_program chromium chromium
  need_program babeltrace2 babeltrace2
  need_program lttng-sessiond lttng-tools
  need_library liblttng-ust.so.1 liblttng-ust1
  need_program node nodejs
  need_program npm npm
  need_program mpirun openmpi-bin
  need_program debuginfod debuginfod
  # Ubuntu's perf belongs to a kernel and has other names; the test that compares with it skips where there is none.
  grep -qi ubuntu /etc/os-release 2>/dev/null || need_program perf linux-perf
fi
if [ "${1:-build}" = vscode ]; then
  need_program rg ripgrep
  need_program pkg-config pkg-config
  need_file /usr/include/gssapi/gssapi.h libkrb5-dev
fi
if [ "${1:-build}" = bare ]; then
  need_program debootstrap debootstrap
fi
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "Leadline needs ${missing[*]} (Debian names) and this machine has no apt-get; install them and run make again." >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "Leadline needs ${missing[*]}; install them as root and run make again." >&2; exit 1; }
  sudo=(sudo)
fi
echo "Installing ${missing[*]}"
"${sudo[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
