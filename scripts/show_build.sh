#!/usr/bin/env bash
# Runs a build and shows how far it is: steps done, seconds, seconds left if the rest goes as what is done. All output goes
# to a log, which is shown when the build fails.
# usage: show_build.sh LOG COMMAND...
set -uo pipefail
log=$1 && shift
mkdir -p "$(dirname "$log")"
end='\n' && [ -t 1 ] && end='\r'

shown=0
NINJA_STATUS='[%f/%t %e] ' "$@" 2>&1 | tee "$log" | while IFS= read -r line; do
  [[ $line =~ ^[[:space:]]*\[([0-9]+)/([0-9]+)\ ([0-9]+)\.[0-9]+\] ]] || continue
  built=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]} seconds=${BASH_REMATCH[3]}
  # A line for every step where it is rewritten, else one for every tenth of the way.
  [ "$end" = '\n' ] && [ "$built" -lt "$all" ] && [ $((built * 10 / all)) -eq "$shown" ] && continue
  shown=$((built * 10 / all))
  printf "   %3d of %d steps, %d s, about %d s more   $end" "$built" "$all" "$seconds" $((seconds * (all - built) / built))
done
status=${PIPESTATUS[0]}
[ -t 1 ] && printf '\n'
[ "$status" -eq 0 ] || cat "$log" >&2
exit "$status"
