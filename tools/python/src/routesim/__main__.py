"""`python -m routesim` and the console script: become the program."""

from __future__ import annotations

import os
import sys

from ._process import binary


def main() -> None:
    """Replaces this process by the program, with the same arguments."""
    program = binary()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
