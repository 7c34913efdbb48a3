"""Rows of tables, made of the program's JSON. A column is named as `expect` names the metric;
numbers are copied, never computed."""

from __future__ import annotations

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
                    row = {**head, "overloaded": stage["overloaded"], "metric": metric}
                    rows.append({**row, "n": len(found["values"]), **_flat_estimate(found)})
    return rows


def _flat_estimate(found: Mapping[str, Any]) -> Row:
    return {key: found[key] for key in ("mean", "sd", "half_width", "low", "high")}


def differences(raw: Result) -> list[Row]:
    taken: Any = raw.get("replications", {"differences": []})
    rows = []
    for pair in taken["differences"]:
        for stage_name, stage in _with_all(pair):
            for metric, found in stage["metrics"].items():
                percent = found["percent"] or {}
                rows.append(
                    {
                        "base": pair["base"],
                        "variant": pair["variant"],
                        "paired": pair["paired"],
                        "stage": stage_name,
                        "metric": metric,
                        **_flat_estimate(found),
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
                cells[metric] = found and found["mean"]
                cells[f"{metric}.half_width"] = found and found["half_width"]
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
            row[goal["name"]] = goal["mean"]
            row[f"{goal['name']}.half_width"] = goal["half_width"]
        rows.append(row)
    return rows


def changes(raw: Row) -> list[Row]:
    rows = []
    for pair in raw["pairs"]:
        for stage in [*pair["stages"], {"name": "all", **pair["summary"]}]:
            for metric, found in stage["metrics"].items():
                rows.append(
                    {
                        "base_variant": pair["base"],
                        "new_variant": pair["new"],
                        "paired": pair["paired"],
                        "stage": stage["name"],
                        "metric": metric,
                        **_flat({k: v for k, v in found.items() if v is not None}),
                    }
                )
    return rows
