#!/usr/bin/env bash
# clang_format.sh ROOT: exits 1 when a C++ file differs from what clang-format makes of it, and 77
# (skipped) when the version whose output the repository follows is not installed.
set -euo pipefail
readonly WANTED=14  # Debian 12's. Other versions break lines differently.
cd "$1"
tool=""
for candidate in "clang-format-$WANTED" clang-format; do
  if command -v "$candidate" >/dev/null 2>&1 &&
    [[ $("$candidate" --version) =~ version\ $WANTED\. ]]; then
    tool="$candidate"
    break
  fi
done
if [[ -z $tool ]]; then
  echo "skipped: clang-format $WANTED is not installed"
  exit 77
fi
find sim policies models workloads tools tests bench \( -name '*.h' -o -name '*.cpp' \) -print0 |
  sort -z | xargs -0 -r "$tool" --dry-run -Werror
