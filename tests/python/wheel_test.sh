#!/usr/bin/env bash
# wheel_test.sh SOURCE SCRATCH PYTHON WERROR INSTRUMENTED: builds the wheel as a release does, and
# uses it where nothing else is: a fresh virtual environment, an empty environment, another folder.
set -euo pipefail
source=$1 scratch=$2 python=$3 werror=$4 instrumented=${5:-}
skip() { echo "skipped: $1"; exit 77; }
fail() { echo "FAILED: $1"; exit 1; }

[[ -z $instrumented ]] || skip "a program with $instrumented is nothing to ship"
[[ $(uname -m) == x86_64 ]] || skip "the tag is for x86_64"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "Python is older than 3.10"
rm -rf "$scratch"
mkdir -p "$scratch"
"$python" -m venv "$scratch/probe" || skip "no virtual environment can be made (package python3-venv)"
"$scratch/probe/bin/pip" -q download --no-deps -d "$scratch/probe" scikit-build-core ||
  skip "pip cannot fetch packages"

# The flags of the build under test, so that the compiler cache knows every file.
wheel=$(SKBUILD_CMAKE_DEFINE="ROUTESIM_WERROR=$werror" "$source/tools/python/build_wheel.sh" "$scratch/dist")
echo "built $(basename "$wheel"), $(stat -c %s "$wheel") bytes"
# glibc 2.36 is Debian 12's.
[[ $wheel =~ -py3-none-manylinux_2_(3[1-6])_x86_64\.whl$ || $(ldd --version | sed -n 1p) != *2.36* ]] ||
  fail "the tag does not fit Debian 12"

start=$(date +%s)
clean=(env -i PATH=/usr/bin:/bin HOME="$scratch" LANG=C.UTF-8)
"${clean[@]}" "$python" -m venv "$scratch/venv"
"${clean[@]}" "$scratch/venv/bin/pip" -q --disable-pip-version-check install --no-index "$wheel"
cd "$scratch"
answer=$("${clean[@]}" "$scratch/venv/bin/python" - <<'PYTHON'
from pathlib import Path

import routesim

share = Path(routesim.__file__).parent / "share" / "routesim"
result = routesim.run(share / "scenarios" / "llm-d-qwen3-32b-16xh100.yaml")
print(*result.variants, result.raw["version"] == routesim.__version__)
assert (share / "docs" / "reference" / "result.schema.json").exists()
PYTHON
)
[[ $answer == "k8s-service llm-d-precise True" ]] || fail "the answer is: $answer"
took=$(($(date +%s) - start))
echo "installed, and the first answer, after $took s"
[[ $took -le 60 ]] || fail "more than 60 s"
"${clean[@]}" "$scratch/venv/bin/routesim" --version | grep '^routesim ' || fail "the console script"
# What the program loads besides the system's own libraries is in the wheel.
program=$("${clean[@]}" "$scratch/venv/bin/python" -c 'import routesim; print(routesim.binary())')
ldd "$program" | grep '=>' | grep -vE "$scratch|lib(c|m|stdc\+\+|gcc_s)\.so" &&
  fail "the libraries above are not in the wheel"
echo "everything holds"
