#!/usr/bin/env bash
# installed_test.sh BUILD SCRATCH CONSUMER CXX INSTRUMENTED: what `cmake --install` leaves behind works
# from its new place: the command runs, and other projects link routesim::sim and routesim::yaml.
set -euo pipefail
readonly build="$1" scratch="$2" consumer="$3" cxx="$4" instrumented="${5:-}"
if [[ -n $instrumented ]]; then
  echo "skipped: the package is tested without instruments ($instrumented)"
  exit 77
fi
rm -rf "$scratch"
cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
"$scratch/prefix/bin/routesim" --version
for component in sim yaml; do
  cmake -S "$consumer" -B "$scratch/$component" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_PREFIX_PATH="$scratch/prefix" -DROUTESIM_COMPONENT=$component >/dev/null
  cmake --build "$scratch/$component"
  "$scratch/$component/consumer"
done

# The same library for build systems that ask pkg-config.
if command -v pkg-config >/dev/null 2>&1; then
  flags=$(PKG_CONFIG_PATH="$scratch/prefix/lib/pkgconfig" pkg-config --cflags --libs routesim)
  # shellcheck disable=SC2086
  "$cxx" -std=c++20 "$consumer/sim_main.cpp" $flags -o "$scratch/by_pkg_config"
  "$scratch/by_pkg_config"
fi
