#!/usr/bin/env bash
# clang_tidy.sh ROOT [PATH...]: exits 1 when clang-tidy finds something (.clang-tidy has the list of
# checks), and 77 (skipped) when the version that list was written for is not installed. Without
# paths it reads every source of the libraries and the command, which takes minutes. Needs no
# build: the flags below are all that these sources want.
set -euo pipefail
readonly WANTED=14  # Debian 12's. Others know other checks.
cd "$1"
shift
tool=""
for candidate in "clang-tidy-$WANTED" clang-tidy; do
  if command -v "$candidate" >/dev/null 2>&1 &&
    [[ $("$candidate" --version) =~ version\ $WANTED\. ]]; then
    tool="$candidate"
    break
  fi
done
if [[ -z $tool ]]; then
  echo "skipped: clang-tidy $WANTED is not installed"
  exit 77
fi
[[ $# -gt 0 ]] || set -- sim policies models workloads tools
generated="$(mktemp -d)"
trap 'rm -rf "$generated"' EXIT
mkdir -p "$generated/tools/cli"
echo '#define ROUTESIM_COMMIT ""' >"$generated/tools/cli/commit.h"

# One process per core and file: what it says about one file stands together.
find "$@" -name '*.cpp' -print0 | sort -z |
  xargs -0 -r -n 1 -P "$(nproc 2>/dev/null || echo 1)" bash -c '
    tool="$1" generated="$2" file="$3"
    said="$("$tool" --quiet "$file" -- -std=c++20 -I. -I"$generated" -isystem /usr/include/eigen3 \
      -DROUTESIM_VERSION=\"0\" 2>/dev/null)" || { printf "%s\n" "$said"; exit 1; }' _ "$tool" "$generated"
