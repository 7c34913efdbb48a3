"""The types are current, hold for the whole package, and the style is the tools'."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE = Path(os.environ["ROUTESIM_SOURCE_DIR"])
PACKAGE = SOURCE / "tools" / "python"


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


class Types(unittest.TestCase):
    def run_module(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=PACKAGE, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_result_types_are_those_of_the_schema(self) -> None:
        self.run_module("generate_result_types.py", "--check")

    @unittest.skipUnless(has("mypy"), "mypy is not installed")
    def test_the_package_is_typed(self) -> None:
        self.run_module("-m", "mypy", "--cache-dir", os.devnull, "src", "generate_result_types.py")

    @unittest.skipUnless(has("ruff"), "ruff is not installed")
    def test_the_style(self) -> None:
        tests = str(SOURCE / "tests" / "python")
        self.run_module(
            "-m", "ruff", "check", "--no-cache", "--config", "pyproject.toml", ".", tests
        )


if __name__ == "__main__":
    unittest.main()
