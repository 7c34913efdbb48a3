#!/usr/bin/env bash
# policies_alone_test.sh SOURCE SCRATCH CXX BUILD_TYPE INSTRUMENTED: the policies library, built without the
# simulator and installed, is used by a project of its own, as a router would.
set -euo pipefail
readonly source_dir="$1" scratch="$2" cxx="$3" build_type="$4" instrumented="${5:-}"
if [[ -n $instrumented ]]; then
  echo "skipped: the package is tested without instruments ($instrumented)"
  exit 77
fi
rm -rf "$scratch/prefix" "$scratch/consumer"
# Compiled exactly like the library of the main build, in a folder just as deep, so that the
# compiler cache has all of it.
build="$source_dir/build/policies-alone-$(basename "$cxx")-$build_type"
cmake -S "$source_dir" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_BUILD_TYPE="$build_type" -DROUTESIM_BUILD_SIM=OFF >/dev/null
cmake --build "$build"
cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
if find "$scratch/prefix" -path '*models*' -o -name '*routesim_sim*' | grep .; then
  echo "the simulator was installed with the policies" >&2
  exit 1
fi
if find "$scratch/prefix" -path '*policies/plugins/*' -o -name '*_impl.h' | grep .; then
  echo "internal headers were installed" >&2
  exit 1
fi
cmake -S "$source_dir/tests/package/consumer" -B "$scratch/consumer" -G Ninja \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
  -DROUTESIM_COMPONENT=policies >/dev/null
cmake --build "$scratch/consumer"
"$scratch/consumer/consumer"
