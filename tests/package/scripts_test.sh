#!/usr/bin/env bash
# scripts_test.sh SOURCE BUILD SCRATCH: tools/run from any folder, through a link, without HOME and
# TERM; what it does when the input is wrong, when packages are missing and nobody is root or no
# network is there, and when CMake is old.
set -euo pipefail
readonly source_dir="$1" build="$2" scratch="$3"
if [[ $(realpath "$build") != "$(realpath "$source_dir")/build/release" ]]; then
  echo "skipped: tools/run builds in build/release, and this is $build"
  exit 77
fi

fail() {
  echo "failed: $*" >&2
  cat "$scratch/out" "$scratch/err" >&2
  exit 1
}
rm -rf "$scratch"
mkdir -p "$scratch/a folder" "$scratch/stubs"

# bare_run EXPECTED_STATUS COMMAND...: with nothing in the environment but PATH.
bare_run() {
  local expected="$1" status=0
  shift
  (cd "$scratch/a folder" && env -i PATH="$run_path" "$@") >"$scratch/out" 2>"$scratch/err" </dev/null ||
    status=$?
  [[ $status -eq $expected ]] || fail "exit code $status instead of $expected: $*"
}

run_path="$PATH"
ln -s "$source_dir/tools/run" "$scratch/a folder/linked run"
bare_run 0 "./linked run" --help
grep -qi 'usage' "$scratch/out" || fail "no usage text"

bare_run 2 "$source_dir/tools/run" no-such-scenario.yaml
[[ ! -s $scratch/out ]] || fail "wrong input, yet something on standard output"
grep -q 'no-such-scenario.yaml' "$scratch/err" || fail "the message does not name the file"

# A machine where one package is missing, we are not root, and sudo would ask for a password.
cat >"$scratch/stubs/dpkg-query" <<'STUB'
#!/bin/sh
for last; do :; done
[ "$last" = libyaml-cpp-dev ] || printf 'ii '
STUB
printf '#!/bin/sh\necho 1000\n' >"$scratch/stubs/id"
printf '#!/bin/sh\nexit 1\n' >"$scratch/stubs/sudo"
printf '#!/bin/sh\necho "apt-get was called" >&2; exit 1\n' >"$scratch/stubs/apt-get"
chmod +x "$scratch/stubs"/*
run_path="$scratch/stubs:$PATH"
bare_run 69 "$source_dir/tools/run" --help
grep -q 'apt-get install --no-install-recommends libyaml-cpp-dev$' "$scratch/err" ||
  fail "the message does not say what to install"
grep -q 'apt-get was called' "$scratch/err" && fail "apt-get was called without rights"
[[ ! -s $scratch/out ]] || fail "something on standard output"

# An administrator without a network: one line says what is wrong.
printf '#!/bin/sh\necho 0\n' >"$scratch/stubs/id"
cat >"$scratch/stubs/apt-get" <<'STUB'
#!/bin/sh
echo "E: Failed to fetch http://deb.debian.org/debian/pool/x.deb  Temporary failure resolving" >&2
exit 100
STUB
bare_run 69 "$source_dir/tools/run" --help
grep -q 'cannot install libyaml-cpp-dev: .* is there a network?' "$scratch/err" ||
  fail "the message does not say that the network is missing"
[[ $(wc -l <"$scratch/err") -eq 2 ]] || fail "more than what is installed and why it fails"

# A CMake from before the presets that are used.
rm "$scratch/stubs/dpkg-query"
printf '#!/bin/sh\necho "cmake version 3.22.1"\n' >"$scratch/stubs/cmake"
chmod +x "$scratch/stubs/cmake"
bare_run 69 "$source_dir/tools/run" --help
grep -q 'stubs/cmake is CMake 3.22.1; 3.25 or newer is needed' "$scratch/err" ||
  fail "the message does not say which CMake is too old"
[[ $(wc -l <"$scratch/err") -eq 1 ]] || fail "more than one line for an old CMake"

# A first build of a clone: one line that counts, with an end; without a terminal one per tenth.
readonly clone="$scratch/clone"
mkdir -p "$clone"/tools/lib
cp "$source_dir/tools/run" "$clone/tools/run"
cp "$source_dir/tools/lib/setup.sh" "$clone/tools/lib/setup.sh"
printf '#!/bin/sh\nprintf "ii "\n' >"$scratch/stubs/dpkg-query"
cat >"$scratch/stubs/cmake" <<'STUB'
#!/bin/sh
case "$1" in
--version) echo "cmake version 3.25.1" ;;
--preset)
  mkdir -p build/release
  echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt
  touch build/release/build.ninja ;;
--build)
  for i in $(seq 40); do
    echo "[$i/40] Building CXX object $i.o"
    [ "$i" != "${FAIL_AT:-}" ] || { echo "error: no luck"; exit 1; }
  done
  printf '#!/bin/sh\necho simulated "$@"\n' >"$2/routesim"
  chmod +x "$2/routesim" ;;
esac
STUB
chmod +x "$scratch/stubs"/*
bare_run 1 FAIL_AT=13 "$clone/tools/run" a.yaml
grep -q '^error: no luck$' "$scratch/err" || fail "a build that failed does not show its log"
grep -q 'built routesim' "$scratch/err" && fail "a build that failed says that it has built"
[[ ! -s $scratch/out ]] || fail "something on standard output of a build that failed"

bare_run 0 "$clone/tools/run" a.yaml
[[ $(cat "$scratch/out") == "simulated run a.yaml" ]] || fail "not only routesim on standard output"
[[ $(grep -c '^run: building routesim [0-9]*/40$' "$scratch/err") -eq 10 ]] ||
  fail "not one line for every tenth"
grep -q '^run: building routesim 40/40$' "$scratch/err" || fail "the progress has no end"
grep -q '^run: built routesim in [0-9]* s$' "$scratch/err" || fail "no word of the end"
grep -q 'Building CXX' "$scratch/err" && fail "the chatter of Ninja is shown"
grep -q 'Building CXX object 40.o' "$clone/build/release/tools-run.log" || fail "no log"

bare_run 0 "$clone/tools/run" a.yaml
[[ ! -s $scratch/err ]] || fail "a later build speaks"

rm "$clone/build/release/routesim"
bare_run 0 script -qec "'$clone/tools/run' a.yaml" /dev/null
tr '\r' '\n' <"$scratch/out" >"$scratch/err"
[[ $(grep -c '^run: building routesim [0-9]*/40' "$scratch/err") -eq 40 ]] ||
  fail "a terminal does not see each step"
[[ $(grep -c 'run: building routesim' "$scratch/out") -eq 1 ]] || fail "more than one line"
grep -q 'run: built routesim in [0-9]* s$' "$scratch/err" || fail "no word of the end on a terminal"
