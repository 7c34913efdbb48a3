#!/usr/bin/env bash
# policies_alone_test.sh SOURCE SCRATCH CXX SANITIZE: the policies library is built without the
# simulator, installed, and used by a project of its own, as a router would.
set -euo pipefail
readonly source_dir="$1" scratch="$2" cxx="$3" sanitize="${4:-}"
if [[ -n $sanitize ]]; then
  echo "skipped: the package is tested without sanitizers"
  exit 77
fi
rm -rf "$scratch/prefix" "$scratch/consumer"
cmake -S "$source_dir" -B "$scratch/build" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
  -DROUTESIM_BUILD_SIM=OFF >/dev/null
cmake --build "$scratch/build"
cmake --install "$scratch/build" --prefix "$scratch/prefix" >/dev/null
if find "$scratch/prefix" -path '*models*' -o -name '*routesim_sim*' | grep .; then
  echo "the simulator was installed with the policies" >&2
  exit 1
fi
cmake -S "$source_dir/tests/package/consumer" -B "$scratch/consumer" -G Ninja \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
  -DROUTESIM_COMPONENT=policies >/dev/null
cmake --build "$scratch/consumer"
"$scratch/consumer/consumer"
