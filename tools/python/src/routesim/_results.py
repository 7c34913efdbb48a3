"""What the commands return: the program's own JSON, and tables made of it."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, cast

from . import _rows
from ._process import Answer, Diagnostic, Inputs, execute
from .result_types import Result

#: A pandas.DataFrame, or with arrow=True a pyarrow.Table.
Table: TypeAlias = Any
Row = dict[str, Any]

#: Pages larger than this are not put into a notebook, which would keep them for ever.
LARGEST_PAGE = 8 << 20


def _table(rows: list[Row], arrow: bool) -> Table:
    """A pandas DataFrame, or a pyarrow Table with the columns in the same order."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    library = "pyarrow" if arrow else "pandas"
    try:
        if arrow:
            import pyarrow

            return pyarrow.table({name: [row.get(name) for row in rows] for name in names})
        import pandas

        return pandas.DataFrame(rows, columns=names)
    except ImportError as error:
        raise ImportError(
            f"routesim makes tables with {library}: pip install 'routesim[{library}]'; "
            "without it, the numbers are in .raw"
        ) from error


class _Page:
    """Something that `routesim report` makes a page of."""

    _text: str

    @property
    def json(self) -> str:
        """The JSON text, byte for byte what the command line writes; of a sweep JSON lines."""
        return self._text

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The page of `routesim report`, in one file that needs no other; written to `path`, too,
        when there is one."""
        inputs = Inputs()
        result = inputs.text(self._text, "result")
        page = execute(["report", result, "--output=-"], inputs).stdout
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _heading(self) -> str:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        heading = "<br>".join(html.escape(line) for line in self._heading().splitlines())
        page = self.to_html()
        if len(page) > LARGEST_PAGE:
            return (
                f"<p>{heading}</p><p>The page is large: write <code>to_html()</code> to a file.</p>"
            )
        return (
            f'<p>{heading}</p><iframe title="routesim" srcdoc="{html.escape(page)}" '
            'sandbox="allow-scripts allow-downloads" '
            'style="width:100%;height:640px;border:1px solid #8884"></iframe>'
        )


class RunResult(_Page):
    """The result of a run. `raw` is the JSON of `run --output json`; the tables repeat its numbers
    under the names that `expect` and gates use, times in seconds."""

    def __init__(self, answer: Answer) -> None:
        self._text = answer.stdout
        self.exit_code = answer.exit_code
        self.diagnostics: list[Diagnostic] = answer.diagnostics  #: the warnings

    @cached_property
    def raw(self) -> Result:
        """The JSON as data; `routesim schema result` describes it."""
        return cast(Result, json.loads(self._text))

    @property
    def passed(self) -> bool | None:
        """Whether every expectation held; None when the intervals do not decide."""
        return {0: True, 1: False}.get(self.exit_code)

    @property
    def variants(self) -> list[str]:
        """The names of the variants, in the order of the scenario."""
        return [variant["name"] for variant in self.raw["variants"]]

    @property
    def verdict(self) -> str:
        """Who wins, by how much, what the result rests on; failed expectations first."""
        return "\n".join(_rows.verdict(self.raw))

    def summary(self, arrow: bool = False) -> Table:
        """The whole run: one row per variant."""
        return _table(_rows.summary(self.raw), arrow)

    def stages(self, arrow: bool = False) -> Table:
        """One row per variant and stage of the load."""
        return _table(_rows.stages(self.raw), arrow)

    def classes(self, arrow: bool = False) -> Table:
        """One row per variant and traffic class."""
        return _table(_rows.classes(self.raw), arrow)

    def replicas(self, arrow: bool = False) -> Table:
        """One row per variant and server."""
        return _table(_rows.replicas(self.raw), arrow)

    def quantiles(self, arrow: bool = False) -> Table:
        """Distributions: one row per variant, stage ("all" = whole run), metric and level."""
        return _table(_rows.quantiles(self.raw), arrow)

    def series(self, cluster: bool = False, arrow: bool = False) -> Table:
        """Over time: one row per variant, endpoint and point; of the whole cluster without
        endpoints. Needs run(series=True), the default."""
        rows = _rows.cluster_series(self.raw) if cluster else _rows.series(self.raw)
        if not rows:
            raise ValueError("this run took no samples over time: run(..., series=True)")
        return _table(rows, arrow)

    def replications(self, arrow: bool = False) -> Table:
        """Means over the runs with 95 % intervals: one row per variant, stage and metric."""
        return _table(_rows.replications(self.raw), arrow)

    def differences(self, arrow: bool = False) -> Table:
        """Paired differences to the first variant, with verdicts. Needs replications."""
        return _table(_rows.differences(self.raw), arrow)

    def expectations(self, arrow: bool = False) -> Table:
        """One row per expectation of the scenario, judged."""
        rows = cast(list[Row], self.raw.get("expectations", []))
        return _table(rows, arrow)

    def to_parquet(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes every table that has rows as a Parquet file into a folder, which is made if need
        be. Returns the files."""
        path = Path(folder)
        tables = {name: rows(self.raw) for name, rows in _rows.TABLES.items()}
        arrow = {name: _table(rows, True) for name, rows in tables.items() if rows}
        import pyarrow.parquet

        path.mkdir(parents=True, exist_ok=True)
        files = []
        for name, table in arrow.items():
            files.append(path / f"{name}.parquet")
            pyarrow.parquet.write_table(table, files[-1])
        return files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON, for `compare` and `routesim report`."""
        Path(path).write_text(self._text, encoding="utf-8")

    def _heading(self) -> str:
        said = self.raw["verdict"]  # The page has the rest.
        return "\n".join([*said["failed"], said["headline"]])

    def _repr_markdown_(self) -> str:
        return "\n".join(f"- {line}" for line in self.verdict.splitlines()) + "\n"

    def __repr__(self) -> str:
        names = ", ".join(self.variants)
        return f"<routesim result {self.raw['scenario']}: {names}>\n{self.verdict}"


class SweepResult(_Page):
    """The rows of a sweep."""

    def __init__(self, answer: Answer) -> None:
        self._text = answer.stdout
        self.diagnostics: list[Diagnostic] = answer.diagnostics

    @cached_property
    def raw(self) -> list[Row]:
        """The rows as the command line writes them."""
        return [json.loads(line) for line in self._text.splitlines()]

    def cells(self, arrow: bool = False) -> Table:
        """The whole run: one row per cell and variant."""
        return _table(_rows.sweep_cells(self.raw), arrow)

    def stages(self, arrow: bool = False) -> Table:
        """One row per cell, variant and stage of the load."""
        return _table(_rows.sweep_stages(self.raw), arrow)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the rows as JSON lines, for `routesim report`."""
        Path(path).write_text(self._text, encoding="utf-8")

    def _heading(self) -> str:
        name = self.raw[0]["sweep"] if self.raw else ""
        return f"sweep {name}: {len(self.raw)} rows"

    def __repr__(self) -> str:
        return f"<routesim {self._heading()}>"


class PlanResult(_Page):
    """The answer to a plan."""

    def __init__(self, answer: Answer) -> None:
        self._text = answer.stdout
        self.exit_code = answer.exit_code
        self.diagnostics: list[Diagnostic] = answer.diagnostics

    @cached_property
    def raw(self) -> Row:
        """The JSON of `plan --output json`."""
        return cast(Row, json.loads(self._text))

    @property
    def passed(self) -> bool:
        """Whether a fleet meets every goal."""
        return self.exit_code == 0

    def plans(self, arrow: bool = False) -> Table:
        """The fleets that meet every goal, one row each, the cheapest first."""
        return _table(_rows.plans(self.raw), arrow)

    def _heading(self) -> str:
        if not self.raw["plans"]:
            return f"plan {self.raw['plan']}: no fleet meets the goals"
        best = self.raw["plans"][0]
        fleet = ", ".join(f"{count} {pool}" for pool, count in best["replicas"].items())
        return (
            f"plan {self.raw['plan']}: {fleet} on {best['hardware']} with {best['policy']}, "
            f"{best['price_per_hour']:g} per hour"
        )

    def __repr__(self) -> str:
        return f"<routesim {self._heading()}>"


class Comparison:
    """Two results side by side."""

    def __init__(self, answer: Answer, text: Callable[[], str]) -> None:
        self.exit_code = answer.exit_code
        self.raw: Row = json.loads(answer.stdout)  #: the JSON of `compare --output json`
        self._text = text

    @property
    def passed(self) -> bool | None:
        """Whether every gate held; None when the intervals do not decide."""
        return {0: True, 1: False}.get(self.exit_code)

    def changes(self, arrow: bool = False) -> Table:
        """What became better or worse: one row per pair of variants, stage ("all" = whole run) and
        metric, times in seconds."""
        return _table(_rows.changes(self.raw), arrow)

    def changed_keys(self, arrow: bool = False) -> Table:
        """What was changed: one row per key of the scenario and of the files it names, and per
        version, with its value in `base` and `new`. `raw["untold"]` says what cannot be told."""
        return _table(_rows.changed_keys(self.raw), arrow)

    @cached_property
    def text(self) -> str:
        """What the command line prints."""
        return self._text()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"

    def __repr__(self) -> str:
        return self.text


class Explanation:
    """Why: `text` for people; `raw` has the data of a request or of lost hits."""

    def __init__(self, raw: list[Row], text: Callable[[], str]) -> None:
        self.raw = raw
        self._text = text

    @cached_property
    def text(self) -> str:
        """What the command line prints."""
        return self._text()

    def __repr__(self) -> str:
        return self.text


class Checked:
    """What `check` found. True when there is no error."""

    def __init__(self, answer: Answer) -> None:
        self.raw: Row = json.loads(answer.stdout)[0]  #: the JSON of `check --output json`

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return bool(self.raw["ok"])

    def __bool__(self) -> bool:
        return self.ok

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Errors and warnings."""
        return [Diagnostic(**found) for found in self.raw["diagnostics"]]

    def __repr__(self) -> str:
        lines = [f"<routesim {self.raw['kind']}: {'ok' if self.ok else 'not ok'}>"]
        return "\n".join(lines + [str(found) for found in self.diagnostics])


class TuneResult(_Page):
    """The answer of a tuning."""

    def __init__(self, answer: Answer) -> None:
        self._text = answer.stdout
        self.exit_code = answer.exit_code
        self.diagnostics: list[Diagnostic] = answer.diagnostics

    @cached_property
    def raw(self) -> Row:
        """The JSON of `tune --output json`."""
        return cast(Row, json.loads(self._text))

    @property
    def passed(self) -> bool | None:
        """Whether a candidate is better; None when the fresh seeds do not decide."""
        return {0: True, 1: False}.get(self.exit_code)

    @property
    def verdict(self) -> str:
        """Whether a candidate is better, and by how much."""
        return str(self.raw["verdict"]["headline"])

    @property
    def epp(self) -> str:
        """The EndpointPickerConfig to deploy; empty where the router has none."""
        return str(self.raw["epp"])

    @property
    def flags(self) -> str:
        """The flags of `vllm serve` to deploy."""
        return str(self.raw["flags"])

    def candidates(self, arrow: bool = False) -> Table:
        """One row per configuration of the search: its knobs, and its metrics where it was run."""
        return _table(_rows.candidates(self.raw), arrow)

    def judged(self, arrow: bool = False) -> Table:
        """On fresh seeds: one row per load and metric, the candidate beside what is published."""
        return _table(_rows.judged(self.raw), arrow)

    def _heading(self) -> str:
        return f"tune {self.raw['tune']}: {self.verdict}"

    def __repr__(self) -> str:
        return f"<routesim {self._heading()}>"


class Validation(_Page):
    """Simulated numbers beside published ones."""

    def __init__(self, answer: Answer) -> None:
        self._text = answer.stdout
        self.exit_code = answer.exit_code
        self.diagnostics: list[Diagnostic] = answer.diagnostics

    @cached_property
    def raw(self) -> Row:
        """The JSON of `validate --output json`."""
        return cast(Row, json.loads(self._text))

    @property
    def passed(self) -> bool:
        """Whether every limit and every gate holds."""
        return self.exit_code == 0

    def cells(self, arrow: bool = False) -> Table:
        """One row per published number, in its `unit`, with the simulated one and the error."""
        return _table(_rows.validated_cells(self.raw), arrow)

    def errors(self, arrow: bool = False) -> Table:
        """Mean and worst errors by what step times rest on, and by quantity."""
        return _table(cast(list[Row], self.raw["by_class"]), arrow)

    def _heading(self) -> str:
        names = ", ".join(scenario["scenario"] for scenario in self.raw["scenarios"])
        return f"validate {names}"

    def __repr__(self) -> str:
        return f"<routesim {self._heading()}>"


class Calibration:
    """A fitted cost curve."""

    def __init__(self, text: str, entry: str) -> None:
        self.text = text  #: how well it fits, as the command line prints it
        self.entry = entry  #: a catalogue file with the curve, in YAML

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the catalogue file, which `catalogue:` of a scenario names."""
        Path(path).write_text(self.entry, encoding="utf-8")

    def __repr__(self) -> str:
        return self.text


class TraceStudy:
    """What the requests of a trace, or of a scenario's load, share."""

    def __init__(self, answer: Answer, text: Callable[[], str]) -> None:
        self.raw: Row = json.loads(answer.stdout)  #: the JSON of `trace --output json`
        self._text = text

    @cached_property
    def text(self) -> str:
        """What the command line prints."""
        return self._text()

    def caches(self, arrow: bool = False) -> Table:
        """The hits that a cache of each size can find."""
        return _table(cast(list[Row], self.raw["caches"]), arrow)

    def prefixes(self, arrow: bool = False) -> Table:
        """The prefixes that most requests share."""
        return _table(cast(list[Row], self.raw["prefixes"]), arrow)

    def __repr__(self) -> str:
        return self.text
