"""The build backend of the package: what it needs, and which build it takes."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import types
import unittest
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

SOURCE = Path(os.environ["ROUTESIM_SOURCE_DIR"])


def load_backend() -> types.ModuleType:
    """The backend, over a stand-in for scikit-build-core, which pip brings only for a build."""
    build = mock.MagicMock()
    build.get_requires_for_build_wheel.return_value = ["cmake"]
    stand_in = {"scikit_build_core": mock.MagicMock(build=build), "scikit_build_core.build": build}
    path = SOURCE / "tools" / "python" / "backend" / "routesim_backend.py"
    spec = importlib.util.spec_from_file_location("routesim_backend", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, stand_in):
        spec.loader.exec_module(module)
    return module


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        self.backend = load_backend()

    def test_they_are_those_of_setup(self) -> None:
        text = (SOURCE / "tools" / "lib" / "setup.sh").read_text()
        found = re.search(r"RUN_PACKAGES=\(([^)]*)\)", text)
        assert found is not None
        self.assertEqual(set(self.backend.HEADERS.values()), set(found[1].split()))

    def test_missing_ones_are_named_before_anything_is_built(self) -> None:
        if shutil.which("c++"):
            self.assertEqual(self.backend.missing_packages("c++"), [], "this build has them")
            more = {**self.backend.HEADERS, "no/such.h": "libno-such-dev"}
            with mock.patch.object(self.backend, "HEADERS", more):
                self.assertEqual(self.backend.missing_packages("c++"), ["libno-such-dev"])
        with (
            mock.patch.dict(os.environ, {"CXX": "no-such-compiler"}),
            self.assertRaisesRegex(SystemExit, r"apt-get install .* g\+\+ libboost-dev"),
        ):
            self.backend.get_requires_for_build_wheel()


class Builds(unittest.TestCase):
    def setUp(self) -> None:
        self.backend = load_backend()

    @contextlib.contextmanager
    def clone(self, cache: str | None, **environment: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            build = root / "build" / "release"
            build.mkdir(parents=True)
            if cache is not None:
                (build / "CMakeCache.txt").write_text(cache.replace("ROOT", str(root)))
            with (
                mock.patch.object(self.backend, "CLONE", root),
                mock.patch.dict(os.environ, environment),
            ):
                for name in ("SKBUILD_CMAKE_DEFINE", "SKBUILD_BUILD_DIR", "ROUTESIM_BUILD"):
                    if name not in environment:
                        os.environ.pop(name, None)
                yield root

    RELEASE = "# a\nCMAKE_HOME_DIRECTORY:INTERNAL=ROOT\nCMAKE_BUILD_TYPE:STRING=Release\n"

    def test_a_release_build_of_the_clone_is_taken(self) -> None:
        with self.clone(self.RELEASE, SKBUILD_CMAKE_DEFINE="A=1") as root:
            self.backend.use_what_is_there()
            self.assertEqual(
                os.environ["SKBUILD_CMAKE_DEFINE"],
                f"A=1;ROUTESIM_PREBUILT={root / 'build' / 'release'}",
            )
            self.assertEqual(os.environ["CCACHE_BASEDIR"] != "", True)

    def test_no_other_is(self) -> None:
        for cache in (
            None,
            self.RELEASE.replace("Release", "Debug"),
            self.RELEASE.replace("ROOT", "/elsewhere"),
            self.RELEASE + "ROUTESIM_SANITIZE:STRING=address\n",
        ):
            with self.clone(cache):
                self.backend.use_what_is_there()
                self.assertNotIn("SKBUILD_CMAKE_DEFINE", os.environ)
                self.assertNotIn("SKBUILD_BUILD_DIR", os.environ)
        with self.clone(self.RELEASE, ROUTESIM_BUILD="none"):
            self.backend.use_what_is_there()
            self.assertNotIn("SKBUILD_CMAKE_DEFINE", os.environ)

    def test_a_named_one_must_fit(self) -> None:
        with (
            self.clone(None, ROUTESIM_BUILD="/nowhere"),
            self.assertRaisesRegex(SystemExit, "/nowhere is no build folder"),
        ):
            self.backend.use_what_is_there()
        with self.clone(self.RELEASE.replace("Release", "Debug")) as root:
            os.environ["ROUTESIM_BUILD"] = str(root / "build" / "release")
            with self.assertRaisesRegex(SystemExit, "is no release build of"):
                self.backend.use_what_is_there()


if __name__ == "__main__":
    unittest.main()
