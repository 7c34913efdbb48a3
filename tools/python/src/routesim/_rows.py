"""Rows of tables, made of the program's JSON. A column is named as `expect` names the metric.
Numbers are copied; only times in ms or us, which a metric's name may ask for, become seconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .result_types import Result

Row = dict[str, Any]

_LATENCIES = {
    "ttft_s": "time_to_first_token",
    "tpot_s": "time_per_output_token",
    "itl_s": "inter_token_latency",
    "request_latency_s": "request_latency",
    "ntpot_s": "normalized_time_per_output_token",
}
_RATES = {
    "requests_per_s": "requests_per_sec",
    "input_tokens_per_s": "input_tokens_per_sec",
    "output_tokens_per_s": "output_tokens_per_sec",
    "total_tokens_per_s": "total_tokens_per_sec",
}


#: The unit of a time in a metric's name, and how many are one second.
_TIME_UNIT = re.compile(r"_(ms|us)(?=\.|$)")
_PER_SECOND = {"ms": 1e3, "us": 1e6}


def in_seconds(metric: str) -> tuple[str, float]:
    """The name of the metric with its times in seconds, and what to divide its values by."""
    found = _TIME_UNIT.search(metric)
    if found is None:
        return metric, 1
    return _TIME_UNIT.sub("_s", metric, count=1), _PER_SECOND[found[1]]


def _divided(values: Mapping[str, Any], divisor: float) -> Row:
    """The same keys; numbers of another unit divided."""
    return {key: v if v is None or divisor == 1 else v / divisor for key, v in values.items()}


def verdict(raw: Result) -> list[str]:
    """The program's verdict: failed expectations first."""
    said = raw["verdict"]
    lines = [*said["failed"], said["headline"], *(line["text"] for line in said["lines"])]
    lines.append(said["ranking"])
    lines += [f"{knee['variant']} {knee['text']}" for knee in said["knees"]]
    lines += [said["overload"], said["goals"], said["trust"]]
    lines += [f"next: {step}" for step in said["next"]]
    return [line for line in lines if line]


def _spread(prefix: str, values: Any, row: Row) -> None:
    """A column per statistic; none where there is no value."""
    for statistic, value in (values or {}).items():
        row[f"{prefix}.{statistic}"] = value


def _requests(stage: Mapping[str, Any]) -> Row:
    """The numbers of a stage, of the whole run or of a class."""
    load, good = stage["load_summary"], stage["successes"]
    row: Row = {}
    if "requested_rate" in load:
        row["rate"] = load["requested_rate"]
        row["concurrency"] = load.get("concurrency")
        row["requests_sent_per_s"] = load["achieved_rate"]
    elif "requests_per_sec_sent" in stage:  # Of a whole run.
        row["requests_sent_per_s"] = stage["requests_per_sec_sent"]
    row["requests"] = load["count"]
    row["successful_requests"] = good["count"]
    row["failed_requests"] = stage["failures"]["count"]
    row["benchmark_duration_s"] = stage["benchmark_time_seconds"]
    for name, key in _RATES.items():
        row[name] = good["throughput"][key]
    for name in ("overloaded", "preemptions"):
        if name in stage:
            row[name] = stage[name]
    row["prefix_cache_hit_rate"] = stage["prefix_hit_ratio"]
    _spread("kv_cache_usage", stage.get("kv_cache_usage"), row)
    _spread("goodput", stage.get("goodput"), row)
    for name, key in _LATENCIES.items():
        _spread(name, good["latency"][key], row)
    _spread("schedule_delay_s", load["schedule_delay"], row)
    _spread("input_length", good["prompt_len"], row)
    _spread("output_length", good["output_len"], row)
    return row


def _variants(raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for variant in raw["variants"]:
        yield variant["name"], variant


def summary(raw: Result) -> list[Row]:
    return [{"variant": name, **_requests(v["summary"])} for name, v in _variants(raw)]


def stages(raw: Result) -> list[Row]:
    return [
        {"variant": name, "stage": stage["name"], "reported": stage["reported"], **_requests(stage)}
        for name, variant in _variants(raw)
        for stage in variant["stages"]
    ]


def classes(raw: Result) -> list[Row]:
    return [
        {"variant": name, "class": requests["name"], **_requests(requests)}
        for name, variant in _variants(raw)
        for requests in variant.get("classes", [])
    ]


def _flat(value: Mapping[str, Any], prefix: str = "") -> Row:
    """A map of maps as one: `kv_cache_usage.mean`."""
    row: Row = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            row.update(_flat(inner, f"{prefix}{key}."))
        else:
            row[prefix + key] = inner
    return row


def replicas(raw: Result) -> list[Row]:
    return [
        {"variant": name, **_flat(replica)}
        for name, variant in _variants(raw)
        for replica in variant["replicas"]
    ]


def quantiles(raw: Result) -> list[Row]:
    rows = []
    for name, variant in _variants(raw):
        parts = [(stage["name"], stage) for stage in variant["stages"]]
        for stage_name, stage in [*parts, ("all", variant["summary"])]:
            for metric, values in stage["quantiles"].items():
                head = {"variant": name, "stage": stage_name, "metric": metric}
                for level, value in zip(raw["quantile_levels"], values or []):
                    rows.append({**head, "level": level, "value_s": value})
    return rows


def _columns(columns: Mapping[str, Any]) -> Iterator[Row]:
    """Lists side by side as rows."""
    for values in zip(*columns.values()):
        yield dict(zip(columns, values))


def series(raw: Result) -> list[Row]:
    rows = []
    for name, variant in _variants(raw):
        taken = variant.get("series", {"endpoints": []})
        for endpoint in taken["endpoints"]:
            head = {"variant": name, "endpoint": endpoint["name"], "pool": endpoint["pool"]}
            lists = {key: v for key, v in endpoint.items() if isinstance(v, list)}
            rows += [{**head, **row} for row in _columns({"time_s": taken["time_s"], **lists})]
    return rows


def cluster_series(raw: Result) -> list[Row]:
    rows = []
    for name, variant in _variants(raw):
        taken = variant.get("series")
        if taken:
            columns = {"time_s": taken["time_s"], **taken["cluster"]}
            rows += [{"variant": name, **row} for row in _columns(columns)]
    return rows


def _with_all(part: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The stages by name, and the whole run as "all"."""
    for stage in part["stages"]:
        yield stage["name"], stage
    yield "all", part["summary"]


def replications(raw: Result) -> list[Row]:
    taken: Any = raw.get("replications", {"variants": []})
    rows = []
    for variant in taken["variants"]:
        for stage_name, stage in _with_all(variant):
            head = {"variant": variant["name"], "stage": stage_name}
            for metric, found in stage["metrics"].items():
                if found:
                    name, divisor = in_seconds(metric)
                    row = {**head, "overloaded": stage["overloaded"], "metric": name}
                    row["n"] = len(found["values"])
                    rows.append({**row, **_flat_estimate(found, divisor)})
    return rows


def _flat_estimate(found: Mapping[str, Any], divisor: float) -> Row:
    keys = ("mean", "sd", "half_width", "low", "high")
    return _divided({key: found[key] for key in keys}, divisor)


def differences(raw: Result) -> list[Row]:
    taken: Any = raw.get("replications", {"differences": []})
    rows = []
    for pair in taken["differences"]:
        for stage_name, stage in _with_all(pair):
            for metric, found in stage["metrics"].items():
                percent = found["percent"] or {}
                name, divisor = in_seconds(metric)
                rows.append(
                    {
                        "base": pair["base"],
                        "variant": pair["variant"],
                        "paired": pair["paired"],
                        "stage": stage_name,
                        "metric": name,
                        **_flat_estimate(found, divisor),
                        "percent": percent.get("mean"),
                        "percent_low": percent.get("low"),
                        "percent_high": percent.get("high"),
                        "verdict": found["verdict"],
                    }
                )
    return rows


#: Every table of a run, by the name of its Parquet file.
TABLES: dict[str, Callable[[Result], list[Row]]] = {
    "summary": summary,
    "stages": stages,
    "classes": classes,
    "replicas": replicas,
    "quantiles": quantiles,
    "series": series,
    "cluster_series": cluster_series,
    "replications": replications,
    "differences": differences,
    "expectations": lambda raw: [dict(found) for found in raw.get("expectations", [])],
}


def _sweep_rows(rows: list[Row], of: Callable[[Row], list[Row]]) -> list[Row]:
    out = []
    for row in rows:
        head = {**row["cell"], "variant": row["variant"], "seed": row["seed"]}
        for part in of(row):
            cells: Row = {**head, "replications": row["replications"]}
            if "name" in part:
                cells.update(stage=part["name"], rate=part.get("requested_rate"))
            cells["overloaded"] = part["overloaded"]
            for metric, found in part["metrics"].items():
                name, divisor = in_seconds(metric)
                keys = ("mean", "half_width")
                values = _divided({key: found and found[key] for key in keys}, divisor)
                cells[name] = values["mean"]
                cells[f"{name}.half_width"] = values["half_width"]
            out.append(cells)
    return out


def sweep_cells(rows: list[Row]) -> list[Row]:
    return _sweep_rows(rows, lambda row: [row["summary"]])


def sweep_stages(rows: list[Row]) -> list[Row]:
    return _sweep_rows(rows, lambda row: list(row["stages"]))


def plans(raw: Row) -> list[Row]:
    rows = []
    for plan in raw["plans"]:
        row = {key: v for key, v in plan.items() if key not in ("goals", "validation")}
        row = _flat(row)
        for goal in plan["goals"]:
            name, divisor = in_seconds(goal["name"])
            values = _divided({key: goal[key] for key in ("mean", "half_width")}, divisor)
            row[name] = values["mean"]
            row[f"{name}.half_width"] = values["half_width"]
        rows.append(row)
    return rows


def _estimates(found: Mapping[str, Any], divisor: float) -> Row:
    """Estimates by side, in columns; the percentages and the verdict as they are."""
    row: Row = {}
    for key, value in found.items():
        if not isinstance(value, Mapping):
            row[key] = value
        else:
            row.update(_flat({key: _divided(value, 1 if key == "percent" else divisor)}))
    return row


def changes(raw: Row) -> list[Row]:
    rows = []
    for pair in raw["pairs"]:
        for stage in [*pair["stages"], {"name": "all", **pair["summary"]}]:
            for metric, found in stage["metrics"].items():
                name, divisor = in_seconds(metric)
                rows.append(
                    {
                        "base_variant": pair["base"],
                        "new_variant": pair["new"],
                        "paired": pair["paired"],
                        "stage": stage["name"],
                        "metric": name,
                        **_estimates({k: v for k, v in found.items() if v is not None}, divisor),
                    }
                )
    return rows


def changed_keys(raw: Row) -> list[Row]:
    return [{**change, "variants": ", ".join(change["variants"])} for change in raw["changes"]]


def candidates(raw: Row) -> list[Row]:
    rows = []
    for candidate in raw["candidates"]:
        row: Row = {"id": candidate["id"], **candidate["values"]}
        for metric, value in candidate["metrics"].items():
            name, divisor = in_seconds(metric)
            row.update(_divided({name: value}, divisor))
        rows.append(row)
    return rows


def judged(raw: Row) -> list[Row]:
    rows = []
    for found in raw["judged"]:
        name, divisor = in_seconds(found["metric"])
        numbers = _divided({k: found[k] for k in ("published", "candidate", "omniscient")}, divisor)
        rows.append(
            {
                "load": found["load"],
                "metric": name,
                "seeds": found["seeds"],
                **numbers,
                **_estimates({"difference": found["difference"] or {}}, divisor),
                **_flat({"gain": found["gain"] or {}}),
                "gap_closed": found["gap_closed"],
            }
        )
    return rows


def validated_cells(raw: Row) -> list[Row]:
    return [
        {
            "scenario": scenario["scenario"],
            **{key: v for key, v in cell.items() if not isinstance(v, (list, dict))},
        }
        for scenario in raw["scenarios"]
        for cell in scenario["cells"]
    ]
