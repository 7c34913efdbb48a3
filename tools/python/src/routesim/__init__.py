"""routesim from Python: the same program, with dicts in and tables out.

>>> import routesim
>>> result = routesim.run("question.yaml", replications=5)
>>> print(result.verdict)
>>> result.stages()  # a pandas DataFrame
"""

from __future__ import annotations

from ._commands import (
    calibrate,
    call,
    check,
    compare,
    explain,
    plan,
    report,
    run,
    sweep,
    trace,
    tune,
    validate,
)
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

__version__ = version()

__all__ = [
    "Calibration",
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
    "TraceStudy",
    "TuneResult",
    "Validation",
    "binary",
    "calibrate",
    "call",
    "check",
    "compare",
    "explain",
    "plan",
    "report",
    "run",
    "sweep",
    "trace",
    "tune",
    "validate",
]
