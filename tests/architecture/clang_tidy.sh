#!/usr/bin/env bash
# clang_tidy.sh ROOT [PATH...]: exits 1 when clang-tidy finds something (.clang-tidy has the list of
# checks), and 77 (skipped) when the version that list was written for is not installed. Without
# paths it reads every source of the libraries and the command, which takes minutes. Needs no
# build: the flags below are all that these sources want.
set -euo pipefail
# shellcheck source=llvm_tool.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/llvm_tool.sh"
cd "$1"
shift
llvm_tool clang-tidy
[[ $# -gt 0 ]] || set -- sim policies models workloads tools
generated="$(mktemp -d)"
trap 'rm -rf "$generated"' EXIT
mkdir -p "$generated/tools/render"
echo '#define ROUTESIM_COMMIT ""' >"$generated/tools/results/commit.h"

# One process per core and file: what it says about one file stands together.
find "$@" -name '*.cpp' -print0 | sort -z |
  xargs -0 -r -n 1 -P "$(nproc 2>/dev/null || echo 1)" bash -c '
    tool="$1" generated="$2" file="$3"
    said="$("$tool" --quiet "$file" -- -std=c++20 -I. -I"$generated" \
      -DROUTESIM_VERSION=\"0\" -DROUTESIM_BUILD_TYPE=\"\" 2>/dev/null)" ||
      { printf "%s\n" "$said"; exit 1; }' _ "$tool" "$generated"
