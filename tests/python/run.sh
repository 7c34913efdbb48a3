#!/usr/bin/env bash
# run.sh VENV PYTHON TEST.py: runs a test with the packages of the environment, or without them.
set -euo pipefail
venv=$1 python=$2 test=$3
[[ ! -e $venv/ready ]] || python=$venv/bin/python
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || exit 77
exec "$python" "$test"
