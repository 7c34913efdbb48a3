#!/usr/bin/env bash
# tests/coverage.sh [BUILD]: line coverage of the libraries after a test run in a build of the preset
# `coverage`; see tests/README.md. Prints one line per library, leaves the uncovered lines of every
# file in BUILD/coverage-LIBRARY.txt, and exits 1 when a library is below the floor.
set -euo pipefail
readonly FLOOR=90  # Percent of lines.
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build/coverage}"
command -v gcovr >/dev/null 2>&1 || { echo "gcovr is not installed (apt-get install gcovr)" >&2; exit 69; }
[[ -d $build ]] || { echo "no $build: build the preset coverage and run its tests first" >&2; exit 2; }

# Once for all counters, which takes the time; the reports are made of what it leaves.
gcovr --root . --object-directory "$build" -j "$(nproc 2>/dev/null || echo 1)" --gcov-ignore-parse-errors \
  --filter '(policies|models|workloads|sim)/' --exclude '.*/examples/' \
  --json "$build/coverage.json" "$build" >/dev/null

status=0
for library in policies models workloads sim; do
  report="$build/coverage-$library.txt"
  gcovr --root . --add-tracefile "$build/coverage.json" --filter "$library/" >"$report"
  read -r lines hit percent < <(awk '/^TOTAL/ { print $2, $3, $4 }' "$report")
  verdict=""
  [[ ${percent%\%} -ge $FLOOR ]] || { status=1; verdict="  below $FLOOR%"; }
  echo "$library: $hit of $lines lines, $percent$verdict"
done
exit "$status"
