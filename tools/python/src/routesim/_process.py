"""One run of the program: its inputs, its streams, its exit code."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: What a command reads: the path of a file, or what the file would hold.
Document = str | os.PathLike[str] | Mapping[str, Any]

#: Exit codes with a result: every expectation held, one failed, the intervals do not decide.
RESULTS = (0, 1, 4)


@dataclass(frozen=True)
class Diagnostic:
    """What is wrong with an input, where, and what to do."""

    severity: str  #: "error" or "warning"
    message: str
    file: str = ""  #: "<scenario>" and so on for a dict
    line: int = 0  #: 0 = no line
    column: int = 0
    path: str = ""  #: the key, such as cluster.pools[0].replicas
    hint: str = ""

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        key = f"{self.path}: " if self.path else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{self.file}{place}: {self.severity}: {key}{self.message}{hint}"


class RoutesimError(Exception):
    """The program could not give a result."""

    def __init__(self, exit_code: int, stderr: str, diagnostics: Sequence[Diagnostic]) -> None:
        errors = [str(d) for d in diagnostics if d.severity == "error"]
        super().__init__("\n".join(errors) or stderr.strip() or f"exit code {exit_code}")
        self.exit_code = exit_code
        self.stderr = stderr
        self.diagnostics = list(diagnostics)


class InvalidInput(RoutesimError):
    """Exit code 2: an input or an argument is wrong; `diagnostics` says all that is."""


class InternalError(RoutesimError):
    """Exit code 3, or a signal: a bug in routesim."""


class Interrupted(KeyboardInterrupt):
    """An interrupt that ended the program. `partial` is the `RunResult` of what was run before, or
    None."""

    def __init__(self, answer: Answer | None = None) -> None:
        super().__init__()
        self.answer = answer
        self.partial: Any = None


class RoutesimWarning(UserWarning):
    """A warning of the program about an input."""


@dataclass(frozen=True)
class Answer:
    """What the program said."""

    exit_code: int
    stdout: str
    diagnostics: list[Diagnostic]


def binary() -> str:
    """The path of the program: $ROUTESIM_BINARY, or the one in this package."""
    chosen = os.environ.get("ROUTESIM_BINARY")
    packaged = Path(__file__).parent / "bin" / "routesim"
    program = Path(chosen) if chosen else packaged
    if not os.access(program, os.X_OK):
        why = "$ROUTESIM_BINARY is no program" if chosen else "this package was not built with it"
        raise FileNotFoundError(f"routesim: {program}: {why}")
    return str(program)


def version() -> str:
    """The version of the package; of the source tree, "0+source"."""
    try:
        return importlib.metadata.version("routesim")
    except importlib.metadata.PackageNotFoundError:
        return "0+source"


def _plain(value: object) -> object:
    """Values that JSON does not know: paths, and numbers and arrays of NumPy."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"routesim cannot read a {type(value).__name__}: {value!r}")


def _json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, default=_plain)


def flags(options: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as options: None and False are left out, True is a switch, a dict is
    KEY=VALUE and a list is the option once per element."""
    arguments: list[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(flag)
        elif isinstance(value, Mapping):
            arguments += [f"{flag}={key}={_text(v)}" for key, v in value.items()]
        elif isinstance(value, (list, tuple)):
            arguments += [f"{flag}={_text(v)}" for v in value]
        else:
            arguments.append(f"{flag}={_text(value)}")
    return arguments


def _text(value: object) -> str:
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    return _json(value)


class Inputs:
    """Gives the program dicts as files in memory, which it finds at /dev/fd/N. Paths in them are
    relative to the folder that the program runs in."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}  # Descriptors, by the name in diagnostics.

    def path(self, document: Document, name: str) -> str:
        """The path to hand over. A sweep or a plan may hold its scenario as a dict, too."""
        if not isinstance(document, Mapping):
            return os.fspath(document)
        inner = document.get("scenario")
        if isinstance(inner, Mapping):
            document = {**document, "scenario": self.path(inner, "scenario")}
        return self.text(_json(document, indent=2) + "\n", name)

    def text(self, text: str, name: str) -> str:
        """The path of a file with this text."""
        descriptor = self._files[name] = os.memfd_create(name)
        with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(text)
        return f"/dev/fd/{descriptor}"

    def descriptors(self) -> list[int]:
        return list(self._files.values())

    def named(self, text: str) -> str:
        """Calls the files by their names: descriptors differ from run to run."""
        for name, descriptor in self._files.items():
            text = re.sub(rf"/dev/fd/{descriptor}\b", f"<{name}>", text)
        return text

    def close(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)


def execute(
    arguments: Sequence[str],
    inputs: Inputs | None = None,
    base: str | os.PathLike[str] | None = None,
    progress: bool = False,
    results: Sequence[int] = RESULTS,
) -> Answer:
    """Runs the program in `base`. Raises for an exit code that is not one of `results`; warns of
    what the program warns of. Interrupts are passed on, and raised when the program has ended."""
    inputs = inputs or Inputs()
    try:
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(
                [binary(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                cwd=base,
                pass_fds=inputs.descriptors(),
                # An interrupt from the terminal must reach the program once: through us.
                start_new_session=True,
            )
            lines, interrupted = _listen(process, progress)
            stderr = inputs.named(lines)
            out.seek(0)
            stdout = inputs.named(out.read().decode())
    finally:
        inputs.close()
    diagnostics = parse_diagnostics(stderr)
    code = process.returncode
    if interrupted or code == 130:
        raise Interrupted(Answer(code, stdout, diagnostics) if stdout else None)
    if code not in results:
        error = InvalidInput if code == 2 else InternalError
        raise error(code, stderr, diagnostics)
    for diagnostic in diagnostics:
        if diagnostic.severity == "warning":
            warnings.warn(str(diagnostic), RoutesimWarning, stacklevel=4)
    return Answer(code, stdout, diagnostics)


def _listen(process: subprocess.Popen[bytes], progress: bool) -> tuple[str, bool]:
    """Standard error until the program ends, shown as it comes when `progress` is wanted; and
    whether an interrupt was passed on."""
    lines: list[str] = []
    assert process.stderr is not None
    interrupted = False
    try:
        while True:
            try:
                for line in process.stderr:
                    lines.append(line.decode(errors="replace"))
                    if progress:
                        sys.stderr.write(lines[-1])
                        sys.stderr.flush()
                process.wait()
                break
            except KeyboardInterrupt:
                if interrupted:  # Somebody does not want to wait for a tidy end.
                    raise
                interrupted = True
                process.send_signal(signal.SIGINT)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        with contextlib.suppress(OSError):
            process.stderr.close()
    return "".join(lines), interrupted


_DIAGNOSTIC = re.compile(
    r"(?P<file>.*?)(?::(?P<line>\d+):(?P<column>\d+))?: (?P<severity>error|warning): "
    r"(?:(?P<path>[\w.\[\]*-]+): )?(?P<message>.*)"
)


def parse_diagnostics(stderr: str) -> list[Diagnostic]:
    """The diagnostics among the lines of standard error: `file:line:column: error: key: message`,
    with a hint on the next line."""
    found: list[Diagnostic] = []
    is_open = False  # Whether the last line can go on.
    for line in stderr.splitlines():
        hint = re.match(r" +hint: (.*)", line)
        match = _DIAGNOSTIC.fullmatch(line)
        if hint and is_open:
            found[-1] = Diagnostic(**{**found[-1].__dict__, "hint": hint[1]})
        elif match:
            parts: dict[str, Any] = {k: v or "" for k, v in match.groupdict().items()}
            parts["line"] = int(parts["line"] or 0)
            parts["column"] = int(parts["column"] or 0)
            found.append(Diagnostic(**parts))
        elif is_open and line.startswith(" "):
            last = found[-1]
            longer = {"message": f"{last.message}\n{line}"}
            found[-1] = Diagnostic(**{**last.__dict__, **longer})
        is_open = bool(match) or (is_open and line.startswith(" "))
    return found
