#!/usr/bin/env bash
# debian_test.sh BUILD SCRATCH INSTRUMENTED: cpack makes two packages whose contents and dependencies
# are as promised. Installing them on a bare system is part of bare_system_test.sh.
set -euo pipefail
readonly build="$1" scratch="$2" instrumented="${3:-}"
for tool in dpkg-deb dpkg-shlibdeps file; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "skipped: $tool is not installed"
    exit 77
  fi
done
if [[ -n $instrumented ]]; then
  echo "skipped: a package of an instrumented build is of no use ($instrumented)"
  exit 77
fi
rm -rf "$scratch"
mkdir -p "$scratch"
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch" >"$scratch/cpack.log" ||
  { cat "$scratch/cpack.log"; exit 1; }

expect() {  # expect DESCRIPTION COMMAND...
  local what="$1"
  shift
  "$@" || { echo "failed: $what" >&2; exit 1; }
}
runtime="$(echo "$scratch"/routesim_*.deb)"
development="$(echo "$scratch"/routesim-dev_*.deb)"
dpkg-deb -c "$runtime" >"$scratch/runtime.list"
dpkg-deb -c "$development" >"$scratch/development.list"
dpkg-deb -x "$runtime" "$scratch/root"
dpkg-deb -f "$runtime" Depends >"$scratch/runtime.depends"
expect "the command is in the package" grep -q ' \./usr/bin/routesim$' "$scratch/runtime.list"
expect "the scenarios are in the package" \
  grep -q ' \./usr/share/routesim/scenarios/.*\.yaml$' "$scratch/runtime.list"
for file in man/man1/routesim.1 bash-completion/completions/routesim \
  zsh/vendor-completions/_routesim fish/vendor_completions.d/routesim.fish \
  doc/routesim/copyright doc/routesim/CHANGELOG.md; do
  expect "$file is in the package" test -s "$scratch/root/usr/share/$file"
done
expect "the shared libraries were found" \
  grep -Eq 'libc6 \(.*libyaml-cpp' "$scratch/runtime.depends"
expect "no header is in the package of the command" \
  test -z "$(grep '\.h$' "$scratch/runtime.list")"
expect "the headers are in the development package" \
  grep -q '/usr/include/routesim/policies/views\.h$' "$scratch/development.list"
expect "the interface of policies is in the package of the library" \
  grep -q '/usr/include/routesim_policy\.h$' "$scratch/development.list"
expect "the CMake package is in the development package" \
  grep -q '/cmake/routesim/routesim-config\.cmake$' "$scratch/development.list"
expect "nobody's name or clone is in the package" \
  test -z "$(dpkg-deb -c "$runtime" | awk '$2 != "root/root"')"
expect "nothing may be written by others" \
  test -z "$(dpkg-deb -c "$runtime" | grep -E '^-.{7}w')"
"$scratch/root/usr/bin/routesim" --version
