"""The commands of the program as functions. Each keyword is the option of the same name; what it
means stands in `routesim COMMAND --help`. Options without a keyword here can be given as well:
`run(scenario, rate="2x")` is `--rate=2x`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ._process import RESULTS, Answer, Document, Inputs, Interrupted, execute, flags
from ._results import (
    Calibration,
    Checked,
    Comparison,
    Explanation,
    PlanResult,
    RunResult,
    SweepResult,
    TraceStudy,
    TuneResult,
    Validation,
)
from .result_types import Result

Folder = str | os.PathLike[str]
Names = str | Sequence[str] | None


#: A result of any study: an object of this package, or a file.
AnyResult = RunResult | SweepResult | PlanResult | TuneResult | Validation | Folder


def _shown(progress: bool | None) -> bool:
    return sys.stderr.isatty() if progress is None else progress


def _simulate(
    command: str,
    document: Document,
    outputs: Sequence[str],
    options: dict[str, Any],
    base: Folder | None,
    progress: bool | None,
) -> Answer:
    inputs = Inputs()
    name = "scenario" if command == "run" else command
    show = _shown(progress)
    arguments = [command, inputs.path(document, name), *outputs, *flags(options)]
    if not options.get("quiet"):
        arguments.append("--progress=" + ("always" if show else "never"))
    return execute(arguments, inputs, base, show, RESULTS)


def run(
    scenario: Document,
    *,
    variant: Names = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    until: str | None = None,
    goodput: Names = None,
    series: bool | str = True,
    records: Folder | None = None,
    check: bool = False,
    jobs: int | None = None,
    base: Folder | None = None,
    progress: bool | None = None,
    **options: Any,
) -> RunResult:
    """Simulates a scenario: a file, or a dict with its keys.

    The program runs in the folder `base` (default: the current one), and paths in a dict are
    relative to it; those in a file are relative to the file. `set` overrides values:
    {"cluster.pools[0].replicas": 4}. A failed or undecided expectation is a result, see
    `RunResult.passed`. Wrong input raises `InvalidInput` with all its `diagnostics`. `progress`
    shows the program's standard error; by default it does when ours is a terminal. An interrupt
    raises `Interrupted`, a `KeyboardInterrupt` that holds the result so far as its `partial`."""
    options.update(
        variant=variant, set=set, seed=seed, replications=replications, until=until,
        goodput=goodput, series=series, records=records, check=check, jobs=jobs,
    )  # fmt: skip
    try:
        answer = _simulate("run", scenario, ["--output=json"], options, base, progress)
    except Interrupted as interrupt:
        interrupt.partial = interrupt.answer and RunResult(interrupt.answer)
        raise
    return RunResult(answer)


def sweep(
    sweep: Document,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    jobs: int | None = None,
    output: Folder | None = None,
    resume: bool = False,
    shard: str | None = None,
    base: Folder | None = None,
    progress: bool | None = None,
    **options: Any,
) -> SweepResult:
    """Runs a scenario over a grid of values. In a dict, `scenario` may be a path or a dict.
    `output` keeps the rows in a file, from which an interrupted sweep can `resume`."""
    options.update(
        set=set, seed=seed, replications=replications, jobs=jobs, resume=resume, shard=shard
    )
    target = "" if output is None else "=" + os.fspath(output)
    answer = _simulate("sweep", sweep, ["--output=jsonl" + target], options, base, progress)
    if output is not None:
        text = (Path(base or ".") / output).read_text(encoding="utf-8")
        answer = Answer(answer.exit_code, text, answer.diagnostics)
    return SweepResult(answer)


def plan(
    plan: Document,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    base: Folder | None = None,
    progress: bool | None = None,
    **options: Any,
) -> PlanResult:
    """Finds the cheapest fleet that meets the goals. In a dict, `scenario` may be a path or a
    dict. Without such a fleet the result has `passed` = False."""
    options.update(set=set, seed=seed, jobs=jobs)
    return PlanResult(_simulate("plan", plan, ["--output=json"], options, base, progress))


def compare(
    base_result: RunResult | Result | Folder,
    new: RunResult | Result | Folder | None = None,
    *,
    fail_if: Names = None,
    variant: Names = None,
    stage: str | None = None,
) -> Comparison:
    """Compares two results, or two variants of one. `fail_if` are gates: "ttft_ms.p99>+5%". A
    failed or undecided gate is a result, see `Comparison.passed`."""

    def answer(format: str) -> Answer:
        inputs = Inputs()
        paths: list[str] = []
        for name, result in (("base", base_result), ("new", new)):
            if isinstance(result, RunResult):
                paths.append(inputs.text(result.json, name))
            elif isinstance(result, Mapping):
                paths.append(inputs.path(result, name))
            elif result is not None:
                paths.append(os.fspath(result))
        options = flags({"fail_if": fail_if, "variant": variant, "stage": stage})
        return execute(["compare", *paths, f"--output={format}", *options], inputs)

    return Comparison(answer("json"), lambda: answer("table").stdout)


def tune(
    document: Document,
    *,
    variant: str | None = None,
    goal: Names = None,
    budget: int | None = None,
    fresh_seeds: int | None = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    base: Folder | None = None,
    progress: bool | None = None,
    **options: Any,
) -> TuneResult:
    """Searches the best configuration of a scenario's variant, or by a tune file, and judges it on
    seeds that the search has not seen. `goal`: "minimise ttft_ms.p90"."""
    options.update(
        variant=variant, goal=goal, budget=budget, fresh_seeds=fresh_seeds, set=set, seed=seed,
        jobs=jobs,
    )  # fmt: skip
    return TuneResult(_simulate("tune", document, ["--output=json"], options, base, progress))


def validate(
    *scenarios: Document,
    seeds: int | None = None,
    fail_if: Names = None,
    limits: Folder | None = None,
    variant: Names = None,
    set: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    base: Folder | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Validation:
    """Compares scenarios with the numbers published for them; without one, all that ship. `fail_if`
    are gates on errors, "ttft.mean>8%", and `limits` is a file of them: see `Validation.passed`."""
    options.update(
        seeds=seeds, fail_if=fail_if, limits=limits, variant=variant, set=set, jobs=jobs
    )
    inputs = Inputs()
    paths = [inputs.path(s, f"scenario {i}" if i else "scenario") for i, s in enumerate(scenarios)]
    arguments = ["validate", *paths, "--output=json", *flags(options)]
    return Validation(execute(arguments, inputs, base, _shown(progress), results=(0, 1)))


def calibrate(
    *data: Folder,
    scenario: Document | Sequence[Document] | None = None,
    free: Names = None,
    model: str | None = None,
    accelerator: str | None = None,
    tp: int | None = None,
    set: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    base: Folder | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Calibration:
    """Fits a cost curve to files of benchmark results or step times, or to the numbers published
    for a `scenario`, by simulating it with the coefficients `free`: "step_ms"."""
    inputs = Inputs()
    documents = scenario if isinstance(scenario, (list, tuple)) else [scenario]
    paths = [
        inputs.path(document, f"scenario {i}" if i else "scenario")
        for i, document in enumerate(documents)
        if document is not None
    ]
    options.update(
        scenario=paths, free=free, model=model, accelerator=accelerator, tp=tp, set=set,
        seeds=seeds, jobs=jobs,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        entry = Path(folder) / "curve.yaml"
        files = [os.fspath(file) for file in data]
        arguments = ["calibrate", *files, f"--out={entry}", *flags(options)]
        answer = execute(arguments, inputs, base, _shown(progress))
        return Calibration(answer.stdout, entry.read_text(encoding="utf-8"))


def trace(
    document: Document,
    *,
    block_size: int | None = None,
    requests: int | None = None,
    variant: str | None = None,
    set: Mapping[str, Any] | None = None,
    base: Folder | None = None,
    **options: Any,
) -> TraceStudy:
    """Tells what the requests of a trace, or of a scenario's load, share: rates, lengths, and the
    hits that a prefix cache of each size can find."""
    options.update(block_size=block_size, requests=requests, variant=variant, set=set)

    def answer(format: str) -> Answer:
        inputs = Inputs()
        path = inputs.path(document, "scenario")
        return execute(["trace", path, f"--output={format}", *flags(options)], inputs, base)

    return TraceStudy(answer("json"), lambda: answer("text").stdout)


def report(
    *results: AnyResult,
    path: Folder | None = None,
    goal: Names = None,
    export: Folder | None = None,
) -> str:
    """One page of results of any study, in one file that needs no other; of two runs, before and
    after. Written to `path`, too, when there is one; `export` is a folder for what it shows as CSV,
    JSON lines and SVG."""
    inputs = Inputs()
    names = [
        os.fspath(result)
        if isinstance(result, (str, os.PathLike))
        else inputs.text(result.json, f"result {i}" if i else "result")
        for i, result in enumerate(results)
    ]
    options = flags({"goal": goal, "export": export})
    page = execute(["report", *names, "--output=-", *options], inputs).stdout
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def explain(
    scenario: Document,
    *,
    request: int | str | None = None,
    hits: bool = False,
    variant: Names = None,
    set: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    base: Folder | None = None,
    **options: Any,
) -> Explanation:
    """Explains every resolved value; or how a `request` was routed (a number, "worst",
    "slowest:3"); or where prefix-cache `hits` were lost."""
    options.update(request=request, hits=hits, variant=variant, set=set, jobs=jobs)
    has_data = request is not None or hits

    def answer(format: str) -> str:
        inputs = Inputs()
        arguments = ["explain", inputs.path(scenario, "scenario"), *flags(options)]
        if has_data:
            arguments.append(f"--output={format}")
        return execute(arguments, inputs, base).stdout

    data = cast(list[dict[str, Any]], json.loads(answer("json"))) if has_data else []
    return Explanation(data, lambda: answer("text"))


def check(
    document: Document,
    *,
    variant: Names = None,
    set: Mapping[str, Any] | None = None,
    keys: bool = False,
    base: Folder | None = None,
    **options: Any,
) -> Checked:
    """Reports all that is wrong with a file or a dict of any kind, and runs nothing. Wrong input
    is a result here, see `Checked.ok`."""
    options.update(variant=variant, set=set, keys=keys)
    inputs = Inputs()
    arguments = ["check", inputs.path(document, "input"), "--output=json", *flags(options)]
    return Checked(execute(arguments, inputs, base, results=(0, 2)))


def call(*arguments: str, base: Folder | None = None) -> str:
    """Runs any command line, such as call("list", "models"), and returns what it prints."""
    return execute(arguments, base=base).stdout
