#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy; any finding fails.
# usage: run_tidy.sh [FILE.cpp...]        all sources below spyre/ without arguments
set -euo pipefail
# One command for each source, which a build in groups does not have.
cmake -S . -B build/tidy -G Ninja -DSPYRE_UNITY=OFF -DCMAKE_BUILD_TYPE=Release > /dev/null
files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(find spyre -name '*.cpp' | sort)
printf '%s\0' "${files[@]}" |
  xargs -0 -n 4 -P "$(nproc)" clang-tidy -p build/tidy --quiet --extra-arg=-Wno-unknown-warning-option 2> /dev/null
echo "clang-tidy: ${#files[@]} sources, no findings"
