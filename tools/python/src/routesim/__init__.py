"""routesim from Python: the same program, with dicts in and tables out.

>>> import routesim
>>> result = routesim.run("question.yaml", replications=5)
>>> print(result.verdict)
>>> result.stages()  # a pandas DataFrame
"""

from __future__ import annotations

from ._commands import call, check, compare, explain, plan, run, sweep
from ._process import (
    Diagnostic,
    InternalError,
    Interrupted,
    InvalidInput,
    RoutesimError,
    RoutesimWarning,
    binary,
    version,
)
from ._results import Checked, Comparison, Explanation, PlanResult, RunResult, SweepResult

__version__ = version()

__all__ = [
    "Checked",
    "Comparison",
    "Diagnostic",
    "Explanation",
    "InternalError",
    "Interrupted",
    "InvalidInput",
    "PlanResult",
    "RoutesimError",
    "RoutesimWarning",
    "RunResult",
    "SweepResult",
    "binary",
    "call",
    "check",
    "compare",
    "explain",
    "plan",
    "run",
    "sweep",
]
