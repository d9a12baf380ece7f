#!/usr/bin/env bash
# All tests: C++ units, then Python end to end. Ends with the counts.
# usage: run_tests.sh BUILD_DIR PYTHON        SPYRE_TEST_FULL=1 adds long sweeps, random programs and sanitizers
set -uo pipefail
build=$1 python=$2
export SPYRE_TOOLS=$PWD/$build/tools SPYRE_BUNDLE=$PWD/$build/tools/spyre-bundle
export SPYRE_CASE_RUNNER=$PWD/$build/tests/ops/spyre_case_runner
export SPYRE_PLACE=$PWD/$build/tools/spyre-place
full=${SPYRE_TEST_FULL:-0}
failed=0

echo "== C++ tests"
labels=(-LE full); [ "$full" = 1 ] && labels=(-C full)
ctest --test-dir "$build" --output-on-failure --no-tests=error -j"$(nproc)" "${labels[@]}" > build/ctest.log 2>&1 || failed=1
[ $failed = 1 ] && cat build/ctest.log
cpp_line=$(grep -E 'tests passed' build/ctest.log | tail -1)
cpp_total=$(sed -E 's/.*out of ([0-9]+).*/\1/' <<< "$cpp_line")
cpp_failed=$(sed -E 's/.*, ([0-9]+) tests failed.*/\1/' <<< "$cpp_line")
echo "C++: $((cpp_total - cpp_failed)) passed, $cpp_failed failed"

echo "== Python tests"
marks=(-m "not full"); [ "$full" = 1 ] && marks=()
"$python" -m pytest tests -n "$(nproc)" --dist worksteal -p no:cacheprovider "${marks[@]}" | tee build/pytest.log
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1

if [ "$full" = 1 ]; then
  echo "== random programs"
  "$python" -m tests.programs.search --minutes 5 --seed "$(date +%s)" || failed=1
  scripts/run_sanitizers.sh || failed=1
fi

summary=$(grep -E '(passed|failed).* in ' build/pytest.log | tail -1)
count() { grep -oE "[0-9]+ $1" <<< "$summary" | grep -oE '[0-9]+' || echo 0; }
echo "$((cpp_total - cpp_failed + $(count passed))) passed, $((cpp_failed + $(count failed) + $(count errors?))) failed, $(count skipped) skipped"
exit $failed
