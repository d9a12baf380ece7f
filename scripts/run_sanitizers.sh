#!/usr/bin/env bash
# The sanitizers: over the C++ tests (address and undefined behaviour, then threads), and over the Python tests, with an
# extension that has the address and undefined-behaviour sanitizers built in.
# usage: run_sanitizers.sh [pytest arguments: files and options instead of all quick tests of e2e, inductor, programs]
set -euo pipefail
python=$PWD/.venv/bin/python

if [ $# = 0 ]; then
  for preset in asan tsan; do
    echo "== $preset"
    cmake --preset "$preset" > /dev/null
    cmake --build --preset "$preset" | tail -1
    ctest --preset "$preset" -LE full
  done
fi

echo "== asan, Python"
cmake --preset asan -DSPYRE_BUILD_GLUE=ON -DPython_EXECUTABLE="$python" > /dev/null
cmake --build --preset asan --target _C | tail -1

# A package beside the installed one: our Python sources and that extension. An empty module takes the place of the
# finder that the editable installation adds at start-up, which would find the installed extension first.
site=$PWD/build/asan/site
rm -rf "$site" && mkdir -p "$site/torch_spyre"
ln -s "$PWD"/python/torch_spyre/* "$site/torch_spyre/"
ln -s "$PWD"/python/torch_spyre_autoload "$site/"
ln -sf "$PWD"/build/asan/glue/_C*.so "$site/torch_spyre/"
touch "$site/_editable_skbc_torch_spyre.py"

# detect_leaks=0: the interpreter and PyTorch keep registries until the process is gone.
# allocator_may_return_null=1: an allocation that is too large is bad_alloc, as without the sanitizer; tests look for that.
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
PYTHONPATH=$site PYTHONMALLOC=malloc \
ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
UBSAN_OPTIONS=print_stacktrace=1 \
  "$python" -m pytest -p no:cacheprovider -m "not full" "${@:-tests/e2e}" $([ $# = 0 ] && echo tests/inductor tests/programs)
