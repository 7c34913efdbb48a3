"""The functions of the package against the program's own output."""

from __future__ import annotations

import html.parser
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import routesim

EXAMPLES = Path(os.environ["ROUTESIM_SOURCE_DIR"]) / "docs" / "examples"

#: docs/examples/question.yaml.
QUESTION = {
    "name": "my-question",
    "question": "What does prefix-aware routing buy us, on how many H100s?",
    "workload": {"inference_perf": "inference-perf.yaml"},
    "cluster": {
        "pools": [
            {
                "name": "vllm",
                "replicas": 4,
                "accelerator": "H100-SXM",
                "model": "Qwen3-32B",
                "tensor_parallel": 2,
                "engine": {"preset": "2026-H1", "block_size": 64},
            }
        ]
    },
    "variants": [
        {"name": "service", "routing": {"balancer": "k8s-service"}},
        {
            "name": "prefix-aware",
            "routing": {"balancer": "endpoint-picker", "endpoint_picker": "epp.yaml"},
        },
    ],
}


#: Columns, and the JSON's names of them.
LATENCIES = {
    "ttft_s": "time_to_first_token",
    "itl_s": "inter_token_latency",
    "request_latency_s": "request_latency",
}


def has(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


def command_line(*arguments: str) -> str:
    command = [os.environ["ROUTESIM_BINARY"], *arguments]
    return subprocess.run(command, capture_output=True, check=True, cwd=EXAMPLES).stdout.decode()


class Documents(unittest.TestCase):
    def test_a_file_gives_the_bytes_of_the_command_line(self) -> None:
        result = routesim.run("question.yaml", seed=3, set={"cluster.pools[0].replicas": 5})
        self.assertEqual(
            result.json,
            command_line(
                "run", "question.yaml", "--seed=3", "--set=cluster.pools[0].replicas=5",
                "--series", "--output=json",
            ),
        )  # fmt: skip

    def test_a_dict_is_the_file_with_its_keys(self) -> None:
        def prints(result: routesim.RunResult) -> list[str]:
            return [variant["fingerprint"] for variant in result.raw["variants"]]

        from_file = routesim.run(EXAMPLES / "question.yaml")
        from_dict = routesim.run(QUESTION, base=EXAMPLES)
        self.assertEqual(prints(from_dict), prints(from_file))
        self.assertNotEqual(
            prints(routesim.run(QUESTION, base=EXAMPLES, seed=2)), prints(from_file)
        )

    def test_a_dict_gives_the_same_bytes_whatever_else_is_open(self) -> None:
        scenario = {**QUESTION, "expect": ["ttft_ms.p99 < 500"]}
        one = routesim.run(scenario, base=EXAMPLES, series=False)
        with open(os.devnull), open(os.devnull):
            other = routesim.run(scenario, base=EXAMPLES, series=False)
        self.assertEqual(one.json, other.json)
        self.assertEqual(one.raw["expectations"][0]["file"], "<scenario>")

    def test_all_that_is_wrong_comes_at_once(self) -> None:
        pool = {**QUESTION["cluster"]["pools"][0], "replicas": -1, "acclerator": "L4"}
        with self.assertRaises(routesim.InvalidInput) as caught:
            routesim.run({**QUESTION, "cluster": {"pools": [pool]}}, base=EXAMPLES)
        found = {d.path: d for d in caught.exception.diagnostics}
        self.assertEqual(caught.exception.exit_code, 2)
        replicas = found["cluster.pools[0].replicas"]
        self.assertEqual(replicas.message, "must be at least 0 (got -1)")
        self.assertEqual((replicas.file, replicas.severity), ("<scenario>", "error"))
        self.assertEqual(found["cluster.pools[0].acclerator"].hint, "did you mean accelerator?")
        self.assertIn("did you mean accelerator?", str(caught.exception))
        # The place is one of the dict as JSON with two spaces.
        text = json.dumps({**QUESTION, "cluster": {"pools": [pool]}}, indent=2).splitlines()
        self.assertIn('"replicas": -1', text[replicas.line - 1])

    def test_an_unknown_option_is_refused_by_the_program(self) -> None:
        with self.assertRaisesRegex(routesim.InvalidInput, "unknown option --sedd"):
            routesim.run("question.yaml", sedd=1)

    def test_a_warning_points_at_the_caller(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = routesim.sweep("sweep.yaml", set={"cluster.pools[0].replicas": 9})
        (warning,) = caught
        self.assertIs(warning.category, routesim.RoutesimWarning)
        self.assertEqual(warning.filename, __file__)
        self.assertEqual([str(d) for d in result.diagnostics], [str(warning.message)])
        self.assertIn("cluster.pools[0].replicas: has no effect", str(warning.message))

    def test_check_reports_and_runs_nothing(self) -> None:
        self.assertTrue(routesim.check(QUESTION, base=EXAMPLES))
        wrong = routesim.check(QUESTION, base=EXAMPLES, set={"foo": 1})
        self.assertFalse(wrong)
        self.assertEqual([d.path for d in wrong.diagnostics], ["foo"])
        self.assertEqual(wrong.raw["scenario"], "<input>")


class Verdicts(unittest.TestCase):
    def test_expectations_and_gates_are_results(self) -> None:
        def run(bound: int) -> routesim.RunResult:
            scenario = {**QUESTION, "expect": [f"ttft_ms.p99 < {bound}"]}
            return routesim.run(scenario, base=EXAMPLES, variant="prefix-aware", series=False)

        self.assertIs(run(100_000).passed, True)
        failed = run(1)
        self.assertIs(failed.passed, False)
        self.assertIn("ttft_ms.p99 < 1", failed.verdict.splitlines()[0])
        self.assertIn("my-question", repr(failed))

    def test_compare_takes_results_dicts_and_files(self) -> None:
        old = routesim.run("question.yaml", series=False)
        new = routesim.run("question.yaml", series=False, set={"cluster.pools[0].replicas": 6})
        changes = [c.raw["pairs"] for c in (
            routesim.compare(old, new), routesim.compare(old.raw, new.raw)
        )]  # fmt: skip
        self.assertEqual(changes[0], changes[1])
        with tempfile.TemporaryDirectory() as folder:
            old.save(Path(folder) / "old.json")
            files = routesim.compare(Path(folder) / "old.json", new)
        self.assertEqual(files.raw["pairs"], changes[0])
        # One run each gives no interval, so a gate cannot be decided.
        gated = routesim.compare(old, new, fail_if="output_tokens_per_s<-5%")
        self.assertIsNone(gated.passed)
        self.assertIn("<base>", gated.text)
        self.assertIn("<new>", gated._repr_html_().replace("&lt;", "<").replace("&gt;", ">"))

    def test_the_page_is_the_command_lines_and_is_escaped(self) -> None:
        result = routesim.run("question.yaml", set={"name": "<script>alert(1)</script>"})
        page = result.to_html()
        self.assertTrue(page.lower().startswith("<!doctype html>"))
        shown = result._repr_html_()
        # One iframe whose document is the page, and nothing that runs outside it.
        frames: list[dict[str, str | None]] = []
        reader = html.parser.HTMLParser()
        reader.handle_starttag = lambda tag, attributes: frames.append(  # type: ignore[method-assign]
            {"tag": tag, **dict(attributes)}
        )
        reader.feed(shown)
        self.assertEqual({frame["tag"] for frame in frames} - {"p", "br"}, {"iframe"})
        self.assertEqual(frames[-1]["srcdoc"], page)
        self.assertNotIn("allow-same-origin", frames[-1]["sandbox"] or "")
        self.assertNotIn("<script>alert", page)


class Studies(unittest.TestCase):
    def test_a_sweep_of_a_dict(self) -> None:
        sweep = {
            "name": "how-many",
            "axes": [{"name": "servers", "path": "cluster.pools[vllm].replicas", "values": [2, 4]}],
            "metrics": ["ttft_ms.p90"],
        }
        nested = routesim.sweep({**sweep, "scenario": QUESTION}, base=EXAMPLES)
        named = routesim.sweep({**sweep, "scenario": "question.yaml"}, base=EXAMPLES)
        cells = [[row["cell"], row["variant"], row["summary"]] for row in nested.raw]
        self.assertEqual(len(cells), 4)
        self.assertEqual(cells, [[r["cell"], r["variant"], r["summary"]] for r in named.raw])
        with open(os.devnull):
            again = routesim.sweep({**sweep, "scenario": QUESTION}, base=EXAMPLES)
        self.assertEqual(again.raw, nested.raw)
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder) / "rows.jsonl"
            kept = routesim.sweep({**sweep, "scenario": QUESTION}, base=EXAMPLES, output=rows)
            self.assertEqual(kept.raw, nested.raw)
            self.assertEqual(len(rows.read_text().splitlines()), 4)

    def test_a_plan(self) -> None:
        found = routesim.plan("plan.yaml")
        self.assertTrue(found.passed)
        self.assertEqual(found.raw["plan"], "next-year")
        self.assertIn(" 3 vllm on H100-SXM", repr(found))
        # A dict with a dict in it, and a fleet that is too small.
        plan = {
            "name": "one-server",
            "scenario": QUESTION,
            "demand": {
                "rate": 10,
                "duration": "60s",
                "set": [
                    "workload.inference_perf.load.stages=[{rate: {rate}, duration: {seconds}}]"
                ],
            },
            "goals": ["ttft_ms.p90 < 1000"],
            "prices": [{"accelerator": "H100-SXM", "per_hour": 2.5}],
            "hardware": [{"accelerator": "H100-SXM", "tensor_parallel": 2}],
            "policies": [{"variant": "service"}],
            "pools": [{"pool": "vllm", "min": 1, "max": 1}],
        }
        impossible = routesim.plan(plan, base=EXAMPLES)
        self.assertIs(impossible.passed, False)
        self.assertIn("no fleet meets the goals", repr(impossible))

    def test_explain(self) -> None:
        one = routesim.explain("question.yaml", request=3, variant="service")
        self.assertEqual(one.raw[0]["request"], 3)
        self.assertEqual(one.text, command_line(
            "explain", "question.yaml", "--request=3", "--variant=service"
        ))  # fmt: skip
        values = routesim.explain(QUESTION, base=EXAMPLES)
        self.assertIn("cluster.pools[0].replicas", values.text)
        self.assertEqual(values.raw, [])

    def test_a_trace(self) -> None:
        chats = routesim.trace("chats.csv")
        self.assertEqual(chats.text, command_line("trace", "chats.csv"))
        self.assertEqual(chats.raw["requests"], 53)
        load = routesim.trace(QUESTION, base=EXAMPLES, requests=40, block_size=64)
        self.assertEqual((load.raw["requests"], load.raw["block_size"]), (40, 64))
        if has("pandas"):
            self.assertEqual(
                list(chats.caches()["hit_ratio"]), [c["hit_ratio"] for c in chats.raw["caches"]]
            )
            self.assertEqual(len(chats.prefixes()), len(chats.raw["prefixes"]))

    def test_a_tuning(self) -> None:
        found = routesim.tune(
            QUESTION, base=EXAMPLES, variant="prefix-aware", budget=30, fresh_seeds=2
        )
        self.assertIn(found.passed, (True, False, None))
        self.assertEqual(found.verdict, found.raw["verdict"]["headline"])
        self.assertIn("kind: EndpointPickerConfig", found.epp)
        self.assertLessEqual(found.raw["search_runs"], 30)
        self.assertIn("<title>", found.to_html())
        if has("pandas"):
            judged = found.judged()
            self.assertEqual(judged.loc[0, "metric"], "ttft_s.p90")
            self.assertEqual(judged.loc[0, "published"], found.raw["judged"][0]["published"] / 1e3)
            self.assertEqual(len(found.candidates()), len(found.raw["candidates"]))

    def test_a_validation(self) -> None:
        found = routesim.validate("benchmark.yaml", seeds=1)
        self.assertTrue(found.passed)
        (scenario,) = found.raw["scenarios"]
        broken = routesim.validate("benchmark.yaml", seeds=1, fail_if="ttft.mean>0%")
        self.assertIs(broken.passed, False)
        if has("pandas"):
            cells = found.cells()
            self.assertEqual(len(cells), len(scenario["cells"]))
            self.assertEqual(
                list(cells["measured"]), [cell["measured"] for cell in scenario["cells"]]
            )
            self.assertEqual(len(found.errors()), len(found.raw["by_class"]))

    def test_a_calibration(self) -> None:
        fit = routesim.calibrate(
            scenario="benchmark.yaml", free="step_ms", seeds=1, evaluations=3, variant=None
        )
        self.assertIn("curves:", fit.entry)
        self.assertTrue(fit.text)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "curve.yaml"
            fit.save(path)
            self.assertEqual(path.read_text(), fit.entry)
            self.assertTrue(routesim.check(path))
        with self.assertRaisesRegex(routesim.InvalidInput, "DATA.csv or --scenario is required"):
            routesim.calibrate()

    def test_a_report_of_any_results(self) -> None:
        run = routesim.run("question.yaml", series=False)
        sweep = routesim.sweep("sweep.yaml")
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            text = routesim.report(run, sweep, path=page, export=Path(folder) / "tables")
            self.assertEqual(page.read_text(encoding="utf-8"), text)
            self.assertIn("my-question", text)
            self.assertTrue(any((Path(folder) / "tables").iterdir()))
            run.save(Path(folder) / "run.json")
            self.assertEqual(run.to_html(), routesim.report(run))
            self.assertIn("my-question", routesim.report(Path(folder) / "run.json"))

    def test_any_command(self) -> None:
        self.assertIn("H100-SXM", routesim.call("list", "accelerators"))


class Tables(unittest.TestCase):
    result: routesim.RunResult

    @classmethod
    def setUpClass(cls) -> None:
        cls.result = routesim.run("question.yaml", replications=3, goodput="ttft:500ms")

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_numbers_are_those_of_the_json(self) -> None:
        raw = self.result.raw
        stages = self.result.stages().set_index(["variant", "stage"])
        self.assertEqual(len(stages), 6)
        whole = self.result.summary().set_index("variant")
        for variant in raw["variants"]:
            parts = [(stages.loc[variant["name"], s["name"]], s) for s in variant["stages"]]
            for row, stage in [*parts, (whole.loc[variant["name"]], variant["summary"])]:
                good, load = stage["successes"], stage["load_summary"]
                self.assertEqual(row["requests"], load["count"])
                self.assertEqual(row.get("rate"), load.get("requested_rate"))
                self.assertEqual(row["overloaded"], stage["overloaded"])
                self.assertEqual(
                    row["output_tokens_per_s"], good["throughput"]["output_tokens_per_sec"]
                )
                self.assertEqual(row["goodput.percentage"], stage["goodput"]["percentage"])
                for name, key in LATENCIES.items():
                    for statistic, value in good["latency"][key].items():
                        self.assertEqual(row[f"{name}.{statistic}"], value)
        replicas = self.result.replicas()
        self.assertEqual(len(replicas), 8)
        self.assertEqual(
            list(replicas["kv_cache_usage.max"]),
            [r["kv_cache_usage"]["max"] for v in raw["variants"] for r in v["replicas"]],
        )

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_over_time_and_over_runs(self) -> None:
        raw = self.result.raw
        series = self.result.series()
        taken = raw["variants"][1]["series"]
        mine = series[(series.variant == "prefix-aware") & (series.endpoint == "vllm-2")]
        self.assertEqual(list(mine.time_s), taken["time_s"])
        self.assertEqual(list(mine.kv_cache_usage), taken["endpoints"][2]["kv_cache_usage"])
        cluster = self.result.series(cluster=True)
        self.assertEqual(
            list(cluster[cluster.variant == "prefix-aware"].sent), taken["cluster"]["sent"]
        )
        runs = self.result.replications()
        one = runs[
            (runs.variant == "service") & (runs.stage == "1") & (runs.metric == "ttft_s.p90")
        ]
        found = raw["replications"]["variants"][0]["stages"][1]["metrics"]["ttft_ms.p90"]
        assert found is not None
        self.assertEqual(
            (one["mean"].item(), one["low"].item()), (found["mean"] / 1e3, found["low"] / 1e3)
        )
        changes = self.result.differences()
        self.assertEqual(set(changes.variant), {"prefix-aware"})
        self.assertEqual(set(changes.stage), {"0", "1", "2", "all"})
        quantiles = self.result.quantiles()
        self.assertEqual(set(quantiles.level), set(raw["quantile_levels"]))
        with self.assertRaisesRegex(ValueError, "series=True"):
            routesim.run("question.yaml", series=False).series()

    @unittest.skipUnless(has("pandas", "pyarrow"), "pandas or pyarrow is not installed")
    def test_arrow_and_parquet_hold_the_same(self) -> None:
        import pandas

        self.assertEqual(
            self.result.stages(arrow=True).to_pylist(), self.result.stages().to_dict("records")
        )
        with tempfile.TemporaryDirectory() as folder:
            files = self.result.to_parquet(Path(folder) / "tables")
            self.assertIn("stages.parquet", [file.name for file in files])
            for file in files:
                table = getattr(self.result, file.stem, lambda: self.result.series(cluster=True))()
                pandas.testing.assert_frame_equal(
                    pandas.read_parquet(file), table, check_dtype=False
                )

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_tables_of_studies(self) -> None:
        sweep = routesim.sweep("sweep.yaml")
        cells = sweep.cells()
        self.assertEqual(list(cells["servers"]), [2, 2, 3, 3, 4, 4])
        self.assertEqual(
            list(cells["ttft_s.p90"]),
            [row["summary"]["metrics"]["ttft_ms.p90"]["mean"] / 1e3 for row in sweep.raw],
        )
        self.assertEqual(len(sweep.stages()), 18)
        plans = routesim.plan("plan.yaml").plans()
        self.assertEqual(list(plans["replicas.vllm"]), [3, 7])
        compared = routesim.compare(self.result, variant=["service", "prefix-aware"])
        changes = compared.changes()
        self.assertEqual(set(changes["stage"]), {"0", "1", "2", "all"})
        found = compared.raw["pairs"][0]["stages"][0]["metrics"]["ttft_ms.mean"]
        first = changes.loc[0]
        self.assertEqual((first["stage"], first["metric"]), ("0", "ttft_s.mean"))
        self.assertEqual(first["difference.mean"], found["difference"]["mean"] / 1e3)
        self.assertEqual(first["percent.mean"], found["percent"]["mean"])
        whole = compared.raw["pairs"][0]["summary"]["metrics"]["output_tokens_per_s"]
        rows = changes[(changes.stage == "all") & (changes.metric == "output_tokens_per_s")]
        self.assertEqual(list(rows["new.mean"]), [whole["new"]["mean"]])
        balancer = compared.changed_keys().set_index("path").loc["routing.balancer"]
        self.assertEqual((balancer["base"], balancer["new"]), ("k8s-service", "endpoint-picker"))

    def times(self, name: str, table: Any) -> None:
        """No name of a column or a metric has another unit of time than seconds."""
        names = [str(column) for column in table.columns]
        if "metric" in table.columns:
            names += list(table["metric"])
        for text in names:
            self.assertNotRegex(text, r"_(ms|us)(\.|$)", f"{name} has {text}")

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_every_time_is_in_seconds(self) -> None:
        for name in ("summary", "stages", "replicas", "quantiles", "series", "replications"):
            self.times(name, getattr(self.result, name)())
        self.times("differences", self.result.differences())
        sweep = routesim.sweep("sweep.yaml")
        self.times("cells", sweep.cells())
        self.times("stages", sweep.stages())
        self.times("plans", routesim.plan("plan.yaml").plans())
        compared = routesim.compare(self.result, variant=["service", "prefix-aware"])
        self.times("changes", compared.changes())
        # Two tables about one number agree.
        changes = compared.changes().set_index(["stage", "metric"])
        runs = self.result.replications().set_index(["variant", "stage", "metric"])
        for metric in ("ttft_s.mean", "itl_s.p99", "requests_per_s", "prefix_cache_hit_rate"):
            mean = runs.loc[("prefix-aware", "1", metric), "mean"]
            self.assertEqual(changes.loc[("1", metric), "new.mean"], mean)

    def test_a_missing_library_is_named(self) -> None:
        with (
            mock.patch.dict(sys.modules, {"pandas": None, "pyarrow": None}),
            self.assertRaisesRegex(ImportError, r"pip install 'routesim\[pandas\]'"),
        ):
            self.result.stages()
        with (
            mock.patch.dict(sys.modules, {"pandas": None, "pyarrow": None}),
            self.assertRaisesRegex(ImportError, r"pip install 'routesim\[pyarrow\]'"),
        ):
            self.result.stages(arrow=True)

    @unittest.skipUnless(has("jsonschema"), "jsonschema is not installed")
    def test_results_match_the_published_schema(self) -> None:
        import jsonschema

        schema = json.loads(routesim.call("schema", "result"))
        jsonschema.Draft7Validator.check_schema(schema)
        jsonschema.Draft7Validator(schema).validate(self.result.raw)
        undeclared = {**self.result.raw, "foo": 1}
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.Draft7Validator(schema).validate(undeclared)


#: Starts a run of hours and says how it ends.
INTERRUPTED = """
import routesim
try:
    routesim.run("question.yaml", replications=100_000)
except KeyboardInterrupt as interrupt:
    print("interrupted")
    print(interrupt.partial is not None and interrupt.partial.raw["interrupted"])
"""


#: Stands for the program: says how it was called, and each signal.
COUNTING = """
import signal, sys, time
log = open({log!r}, "w", buffering=1)
signal.signal(signal.SIGINT, lambda *_: print("SIGINT", file=log))
print(*sys.argv, file=log)
signal.pause()
time.sleep(2)
sys.exit(130)
"""


class Process(unittest.TestCase):
    def test_an_interrupt_ends_the_program_too(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pid_file = Path(folder) / "pid"
            wrapper = Path(folder) / "routesim"
            wrapper.write_text(
                f'#!/bin/sh\necho $$ > {pid_file}\nexec {os.environ["ROUTESIM_BINARY"]} "$@"\n'
            )
            wrapper.chmod(0o755)
            caller = subprocess.Popen(
                [sys.executable, "-c", INTERRUPTED],
                env={**os.environ, "ROUTESIM_BINARY": str(wrapper)},
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            deadline = time.monotonic() + 60
            while not (pid_file.exists() and pid_file.read_text().strip()):
                self.assertLess(time.monotonic(), deadline, "the program did not start")
                time.sleep(0.05)
            time.sleep(1)  # Past its reading of files: from here on it ends in order.
            caller.send_signal(signal.SIGINT)
            out, _ = caller.communicate(timeout=60)
            self.assertEqual(out, b"interrupted\nTrue\n")
            with self.assertRaises(ProcessLookupError):
                os.kill(int(pid_file.read_text()), 0)

    def test_an_interrupt_from_the_terminal_reaches_the_program_once(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            stub = Path(folder) / "routesim"
            stub.write_text(f"#!{sys.executable}\n{COUNTING.format(log=str(log))}")
            stub.chmod(0o755)
            caller = subprocess.Popen(
                [sys.executable, "-c", INTERRUPTED],
                env={**os.environ, "ROUTESIM_BINARY": str(stub)},
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            deadline = time.monotonic() + 60
            while not log.exists():
                self.assertLess(time.monotonic(), deadline, "the program did not start")
                time.sleep(0.05)
            # The program would see the terminal's signal long before we pass ours on.
            caller.send_signal(signal.SIGSTOP)
            os.killpg(caller.pid, signal.SIGINT)
            time.sleep(0.5)
            caller.send_signal(signal.SIGCONT)
            out, _ = caller.communicate(timeout=60)
            self.assertEqual(out, b"interrupted\nFalse\n", "the stub prints no result")
            said = log.read_text().splitlines()
            self.assertIn("--progress=never", said[0])
            self.assertEqual(said[1:], ["SIGINT"])

    def test_progress_is_shown_when_wanted(self) -> None:
        code = "import routesim; routesim.run('question.yaml', progress={})"
        for wanted, shown in ((True, b"prefix-aware: 1440 requests"), (False, b"")):
            done = subprocess.run(
                [sys.executable, "-c", code.format(wanted)], capture_output=True, check=True
            )
            self.assertEqual(done.stdout, b"")
            self.assertIn(shown, done.stderr)
            self.assertEqual(bool(done.stderr), wanted)

    def test_the_console_script_is_the_program(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "routesim", "run", "question.yaml", "--sedd=1"],
            capture_output=True,
            check=False,
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"unknown option --sedd", done.stderr)

    def test_a_missing_program_is_named(self) -> None:
        with (
            mock.patch.dict(os.environ, {"ROUTESIM_BINARY": "/nowhere/routesim"}),
            self.assertRaisesRegex(FileNotFoundError, "ROUTESIM_BINARY is no program"),
        ):
            routesim.binary()


if __name__ == "__main__":
    unittest.main()
