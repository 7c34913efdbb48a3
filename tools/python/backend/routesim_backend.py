"""The build backend of the package: scikit-build-core, told to use what this clone has built.

Where build/release of the clone holds a release build, the wheel takes its program, brought up to
date: that takes no longer than `cmake --build`. Without one, or with ROUTESIM_BUILD=none, the
program is built in build/wheel, with the settings under which ccache finds what other build folders
compiled. ROUTESIM_BUILD=FOLDER names another build folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scikit_build_core import build as _build
from scikit_build_core.build import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_wheel",
]

CLONE = Path(__file__).resolve().parents[3]

#: A header of each library, and the package of Debian and Ubuntu that holds it. tests/python
#: compares the packages with those of tools/lib/setup.sh.
HEADERS = {
    "boost/version.hpp": "libboost-dev",
    "boost/program_options.hpp": "libboost-program-options-dev",
    "yaml-cpp/yaml.h": "libyaml-cpp-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "fmt/format.h": "libfmt-dev",
    "muParser.h": "libmuparser-dev",
    "Random123/philox.h": "librandom123-dev",
    "xxhash.h": "libxxhash-dev",
    "eigen3/Eigen/Core": "libeigen3-dev",
    "tbb/version.h": "libtbb-dev",
}


def missing_packages(compiler: str) -> list[str]:
    """The packages without which the program cannot be built."""
    if shutil.which(compiler) is None:
        return ["g++", *HEADERS.values()]
    questions = "".join(
        f"#if !__has_include(<{header}>)\nmissing {package}\n#endif\n"
        for header, package in HEADERS.items()
    )
    done = subprocess.run(
        [compiler, "-std=c++20", "-E", "-P", "-x", "c++", "-"],
        input=questions, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return [line.removeprefix("missing ").replace(" ", "") for line in done.stdout.splitlines()]


def existing_build() -> Path | None:
    """A release build of this clone; None where there is none, or none is wanted."""
    chosen = os.environ.get("ROUTESIM_BUILD")
    if chosen == "none":
        return None
    folder = Path(chosen).resolve() if chosen else CLONE / "build" / "release"
    cache = folder / "CMakeCache.txt"
    if not cache.is_file():
        if chosen:
            raise SystemExit(f"routesim: $ROUTESIM_BUILD: {folder} is no build folder")
        return None
    settings = dict(
        line.split("=", 1)
        for line in cache.read_text(encoding="utf-8").splitlines()
        if "=" in line and not line.startswith(("#", "//"))
    )
    named = {key.split(":")[0]: value for key, value in settings.items()}
    fits = (
        Path(named.get("CMAKE_HOME_DIRECTORY", "/")).resolve() == CLONE
        and named.get("CMAKE_BUILD_TYPE") == "Release"
        and not named.get("ROUTESIM_SANITIZE")
    )
    if chosen and not fits:
        raise SystemExit(f"routesim: $ROUTESIM_BUILD: {folder} is no release build of {CLONE}")
    return folder if fits else None


def use_what_is_there() -> None:
    """Sets what scikit-build-core and ccache read from the environment."""
    os.environ.setdefault("CXX", "c++")
    os.environ.setdefault("CCACHE_BASEDIR", str(CLONE))
    folder = existing_build()
    if folder is None:
        return
    defines = os.environ.get("SKBUILD_CMAKE_DEFINE")
    ours = f"ROUTESIM_PREBUILT={folder}"
    os.environ["SKBUILD_CMAKE_DEFINE"] = f"{defines};{ours}" if defines else ours
    os.environ["SKBUILD_BUILD_DIR"] = str(CLONE / "build" / "wheel-of-build")


def get_requires_for_build_wheel(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """Asked first: what is missing is named before anything is fetched or compiled."""
    missing = missing_packages(os.environ.get("CXX", "c++"))
    if missing:
        raise SystemExit(
            "routesim: the program is built from its sources, and these packages are missing:\n"
            f"  apt-get install --no-install-recommends {' '.join(missing)}\n"
            "tools/setup installs all that is needed; a wheel needs none of them."
        )
    return list(_build.get_requires_for_build_wheel(dict(config_settings or {})))


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Mapping[str, Any] | None = None
) -> str:
    return str(
        _build.prepare_metadata_for_build_wheel(metadata_directory, dict(config_settings or {}))
    )


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    use_what_is_there()
    settings = dict(config_settings or {})
    return str(_build.build_wheel(wheel_directory, settings, metadata_directory))
