# What check.sh and check_amd.sh share: packages from wheels and a build of Leadline in $work/site, without network.
# Read with `source`; wants $root, $work, $site and $python, and leaves PYTHONPATH with the site in front.

# Packages that this Python lacks, from wheels; nothing is installed into the Python itself.
wheels=${WHEELS:-$root/.whl}
if [ -d "$wheels" ]; then
  for wheel in "$wheels"/*.whl; do
    package=$(basename "$wheel" | sed 's/-.*//')
    "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$package') is None)" ||
      "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$wheel"
  done
fi
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}

build() {
  # A folder on PYTHONPATH has no .pth files; this does for child processes what leadline.pth does.
  printf 'import os\nif os.environ.get("LEADLINE"):\n    import leadline._autostart\n' >"$site/sitecustomize.py"
  [ -z "${BUILT:-}" ] || return 0
  mkdir -p "$site/leadline"
  cmake -S "$root" -B "$work/native" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLEADLINE_PYTHON=ON -DLEADLINE_TESTS=OFF \
    -DPython_EXECUTABLE="$python" &&
    cmake --build "$work/native" -j "${JOBS:-$(nproc)}" &&
    cp -r "$root/python/leadline/." "$site/leadline/" &&
    rm -f "$site"/leadline/*.so &&
    cmake --install "$work/native" --prefix "$site" --strip
}
build_fakes() { # the package of tests that has the fakes
  mkdir -p "$work/fakes"
  PYTHONPATH=$root "$python" -c "import sys, pathlib, $1 as fakes; fakes.build(pathlib.Path(sys.argv[1]), sys.argv[2])" \
    "$work/fakes" "${CXX:-g++}"
}
