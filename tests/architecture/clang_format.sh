#!/usr/bin/env bash
# clang_format.sh ROOT: exits 1 when a C++ file differs from what clang-format makes of it, and 77
# (skipped) when the version whose output the repository follows is not installed.
set -euo pipefail
# shellcheck source=llvm_tool.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/llvm_tool.sh"
cd "$1"
llvm_tool clang-format
find sim policies models workloads tools tests bench \( -name '*.h' -o -name '*.cpp' \) -print0 |
  sort -z | xargs -0 -r "$tool" --dry-run -Werror
