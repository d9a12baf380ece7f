#!/usr/bin/env bash
# Unit tests of the C++ layers under the sanitizers.
set -euo pipefail
for preset in asan tsan; do
  echo "== $preset"
  cmake --preset "$preset" > /dev/null
  cmake --build --preset "$preset" | tail -1
  ctest --preset "$preset" -LE full
done
