#!/usr/bin/env bash
# debian_test.sh BUILD SCRATCH INSTRUMENTED: cpack makes two packages whose contents and dependencies
# are as promised, and the command works from its installed place. Installing them on a bare system
# is part of bare_system_test.sh.
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
readonly share="$scratch/root/usr/share" command="$scratch/root/usr/bin/routesim"

for file in man/man1/routesim.1.gz bash-completion/completions/routesim \
  zsh/vendor-completions/_routesim fish/vendor_completions.d/routesim.fish \
  doc/routesim/copyright doc/routesim/changelog.gz routesim/scenarios/limits.csv \
  routesim/docs/tutorial.md routesim/docs/third-party.md routesim/routesim.spdx.json \
  routesim/docs/reference/scenario.schema.json doc/routesim/docs/tutorial.md \
  doc/routesim/examples/policies/rust/shortest_queue.rs; do
  expect "$file is in the package" test -s "$share/$file"
done
expect "the shared libraries were found" \
  grep -Eq 'libc6 \(.*libyaml-cpp' "$scratch/runtime.depends"
expect "the only header in the package of the command is that of policies" \
  test "$(grep '\.h$' "$scratch/runtime.list" | grep -o '[^/]*$')" = routesim_policy.h
for file in include/routesim/policies/views.h include/routesim_policy.h \
  lib/cmake/routesim/routesim-config.cmake lib/pkgconfig/routesim.pc; do
  expect "$file is in the development package" grep -q "/usr/$file\$" "$scratch/development.list"
done
expect "nobody's name or clone is in the package" \
  test -z "$(dpkg-deb -c "$runtime" | awk '$2 != "root/root"')"
expect "nothing may be written by others" \
  test -z "$(dpkg-deb -c "$runtime" | grep -E '^-.{7}w')"

# The links of the installed documentation lead to something.
grep -roE '\]\([^)#: ]+' "$share/routesim/docs" --include='*.md' | sed '/](https\?$/d; s/](//' |
  while IFS=: read -r page link; do
    expect "$page: $link is in the package" test -e "$(dirname "$page")/$link"
  done

# Every library that the command is linked with has a row of the notices, and every row is in the SBOM.
readonly notices="$share/routesim/docs/third-party.md"
grep '^| .* | https:' "$notices" >"$scratch/rows"
# source_of PACKAGE...: what they are built from, without a release: boost for libboost-dev.
source_of() {
  dpkg-query -W -f '${source:Package}\n' "$@" 2>/dev/null | sed 's/-defaults$//; s/[0-9.]*$//'
}
cut -d '|' -f 5 "$scratch/rows" | while read -r package; do source_of "$package" || true; done \
  >"$scratch/sources"
ldd "$command" | sed -n 's|.* => \(/.*\) (0x.*|\1|p' | while read -r library; do
  package="$(dpkg-query -S "*/$(basename "$(realpath "$library")")" | sed -n 1p | cut -d : -f 1)"
  expect "$library of $package has a row in third-party.md" \
    grep -qx "$(source_of "$package" | sed -n 1p)" "$scratch/sources"
done
echo "file(READ \"$share/routesim/routesim.spdx.json\" text)
string(JSON count LENGTH \${text} packages)
message(\${count})" >"$scratch/count.cmake"
expect "the SBOM has routesim and every row" \
  test "$(cmake -P "$scratch/count.cmake" 2>&1)" -eq $(($(wc -l <"$scratch/rows") + 1))

# The command, away from the repository: scenarios by name, by the path of the documentation, all.
cd "$scratch"
"$command" --version
says() {  # says DESCRIPTION PATTERN ARGUMENT...: the command prints a line with the pattern
  local what="$1" pattern="$2"
  shift 2
  "$command" "$@" >"$scratch/out" 2>"$scratch/err" || true
  expect "$what" grep -q "$pattern" "$scratch/out"
}
says "list finds the installed scenarios" \
  "^scenarios/llm-d-qwen3-32b-16xh100.yaml " list scenarios
for name in llm-d-qwen3-32b-16xh100 scenarios/llm-d-qwen3-32b-16xh100.yaml qwen3-32b-cheapest-fleet \
  sweeps/h100-rate-map docs/examples/question.yaml; do
  expect "check finds $name" "$command" check "$name"
done
says "run finds a scenario by its name" '^kubeai-llama3.1-8b-2xl4,' run kubeai-llama3.1-8b-2xl4
says "validate without a name compares all" '^kubeai_l4_2r_llama31_8b_fp8' \
  validate --seeds 1 --summary
status=0
"$command" run no-such-scenario 2>"$scratch/err" || status=$?
expect "a name that is no scenario is an error" test "$status" -eq 2
expect "and the error names it" grep -q 'no-such-scenario' "$scratch/err"

# Hardened as Debian's own programs are.
hardened() { expect "the command has $1" grep -Eq -- "$2" "$scratch/elf"; }
readelf -hldW --dyn-syms "$command" >"$scratch/elf"
hardened "a position-independent executable" 'Type: +DYN'
hardened "read-only relocations" GNU_RELRO
hardened "immediate binding" 'FLAGS_1.*NOW'
hardened "the stack protector" __stack_chk_fail
hardened "fortified functions" '__[a-z]+_chk@'

if command -v lintian >/dev/null 2>&1; then
  lintian --allow-root --profile debian --fail-on error "$runtime" "$development" || { echo "failed: lintian" >&2; exit 1; }
else
  echo "lintian is not installed"
fi
