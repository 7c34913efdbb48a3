#!/usr/bin/env bash
# environment.sh VENV PYTHON: a virtual environment with what the Python tests can make use of. The
# packages are wanted, not needed: without them the tests skip the parts that are about them.
set -euo pipefail
venv=$1 python=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
  echo "skipped: the package needs Python 3.10, and this is $("$python" --version)"
  exit 77
}
[[ ! -e $venv/ready ]] || exit 0
"$python" -m venv --clear "$venv" || {
  echo "skipped: no virtual environment can be made (package python3-venv)"
  exit 77
}
# About 120 MB, in 20 to 40 s.
timeout 300 "$venv/bin/pip" --disable-pip-version-check -q install \
  pandas pyarrow jsonschema "mypy<3" "ruff<1" nbclient ipykernel || {
  echo "skipped: pip cannot install the packages"
  exit 77
}
touch "$venv/ready"
