#!/usr/bin/env bash
# lint.sh PYTHON_BIN_FOLDER JOBS [--deep]: every check of the sources; runs them all, then fails if one has failed.
set -uo pipefail

bin="$1"
jobs="$2"
depth=("${@:3}")
failed="$(mktemp)"
trap 'rm -f "$failed"' EXIT

check() {
  local name="$1" output
  shift
  if output="$("$@" 2>&1)"; then
    echo "ok      $name"
  else
    echo "$name" >>"$failed"
    printf 'FAILED  %s\n%s\n' "$name" "$output"
  fi
}

mapfile -t cpp < <(git ls-files --cached --others --exclude-standard 'native/*.h' 'native/*.c' 'native/*.cc' 'native/*.cpp' \
  | grep -v '_generated\.h$')
tidy_folders=(base cct unwind stack monitor writer collector gpu providers session xla)

configure_tidy() { cmake -S . -B build/tidy -G Ninja -DLEADLINE_PYTHON=OFF -DLEADLINE_TESTS=ON -DLEADLINE_TIDY=ON; }

# What takes one core, beside what takes all.
{
  check "generated files are fresh" "$bin/python" schema/generate.py --check
  check "import table" "$bin/python" tools/check_imports.py
  check "file lengths" "$bin/python" tools/check_length.py
  check "habits of tests" "$bin/python" tools/check_tests.py
  check "ruff check" "$bin/ruff" check .
  check "ruff format" "$bin/ruff" format --check .
  check "prettier" tests/js/node_modules/.bin/prettier --check "ui/**/*.{ts,tsx,mjs}" "tests/js/*.mjs"
  check "the page's types" npm --prefix ui --silent run check
  check "the page's bundle is fresh" npm --prefix ui --silent run fresh
  check "mypy --strict" "$bin/mypy"
  check "clang-format" clang-format --dry-run -Werror "${cpp[@]}"
} &
check "cmake" configure_tidy
check "clang-tidy" "$bin/python" tools/run_clang_tidy.py "${depth[@]}" build/tidy "$jobs" "${tidy_folders[@]/#/native/}"
wait

if [ -s "$failed" ]; then
  echo "lint: $(wc -l <"$failed") checks failed: $(paste -sd ' ' "$failed")" >&2
  exit 1
fi
