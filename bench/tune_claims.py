#!/usr/bin/env python3
"""Whether tunings keep what they claim: tunes 20 small scenarios, and repeats every claim on 60
seeds that the tool has not seen. By hand, since it takes minutes:

    bench/tune_claims.py build/release/routesim [SCENARIOS] [JOBS]

Says for each claim whether the gain of those seeds lies in the interval of the headline, and which
metrics are worse there that the headline does not name: beyond 95 % intervals, of which chance alone
breaks one in 40, and beyond noise (level 5 % for all metrics of all claims together, Bonferroni).
Exit code 1 when fewer than 9 of 10 claims keep their interval, or a metric beyond noise has no
mention. Each scenario has a seed of its own: with common seeds one heavy block of requests would
count 20 times.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

SEEDS = 60
APART = 1_000_000  # Seeds of one scenario, which a tuning uses the first 11,000 of.
UNSEEN = 500_000  # Behind the scenario's seed.
T_95 = 2.0010  # Student's t of 59 degrees of freedom, 97.5 %.
METRICS = [f"{time}_ms.{statistic}" for time in ("ttft", "tpot", "itl", "request_latency")
           for statistic in ("mean", "p90", "p99")] + [
               "output_tokens_per_s", "requests_per_s", "prefix_cache_hit_rate", "failure_rate"]
LARGER = ("output_tokens_per_s", "requests_per_s", "prefix_cache_hit_rate")
GOALS = ["minimise ttft_ms.p90", "minimise ttft_ms.mean", "minimise request_latency_ms.mean",
         "minimise tpot_ms.mean", "minimise ttft_ms.p99", "maximise output_tokens_per_s"]

PICKER = """apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: precise-prefix-cache-scorer
  parameters: {{tokenProcessorConfig: {{blockSize: 16}}}}
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
  - {{pluginRef: precise-prefix-cache-scorer, weight: {prefix}}}
  - {{pluginRef: queue-scorer, weight: {queue}}}
  - {{pluginRef: kv-cache-utilization-scorer, weight: {cache}}}
  - {{pluginRef: max-score-picker}}
"""


def write_scenario(i):
    """Scenario i: a fleet, a load and a router's file, none of them chosen by their results."""
    draw = random.Random(i)
    replicas = draw.choice([2, 3, 4])
    load = {"requests": draw.choice([80, 120, 160]), "rate": replicas * draw.uniform(2.5, 4),
            "groups": draw.choice([6, 12, 24]), "prefix_len": draw.choice([1024, 2048, 4096]),
            "suffix_len": draw.choice([128, 512]), "output_len": draw.choice([32, 64, 128])}
    with open("epp.yaml", "w") as f:
        f.write(PICKER.format(prefix=draw.choice([0, 1, 2, 3]), queue=draw.choice([0, 1, 2]),
                              cache=draw.choice([0, 1, 2])))
    with open("s.yaml", "w") as f:
        f.write(f"name: s{i}\nseed: {1 + APART * i}\nworkload: {{groups: {json.dumps(load)}}}\n"
                "cluster:\n  pools:\n"
                f"  - {{name: a, replicas: {replicas}, accelerator: H100-SXM, model: Qwen3-32B,\n"
                "     tensor_parallel: 2, engine: {kv_cache_tokens: "
                f"{draw.choice([30000, 60000])}, max_num_seqs: {draw.choice([8, 32, 128])}}}}}\n"
                "routing: {balancer: endpoint-picker, endpoint_picker: epp.yaml}\n")
    with open("tune.yaml", "w") as f:
        f.write(f"scenario: s.yaml\ngoals: [{GOALS[i % len(GOALS)]}]\nbudget: 120\n"
                + ("subject_to: []\n" if i % 2 else "") +
                "knobs:\n"
                "- {weight: precise-prefix-cache-scorer, values: [0, 1, 2, 3]}\n"
                "- {weight: queue-scorer, values: [0, 1, 2, 3]}\n"
                "- {weight: kv-cache-utilization-scorer, values: [0, 1, 2, 3]}\n"
                "- {set: 'cluster.pools[a].engine.max_num_seqs', values: [8, 32, 128]}\n")


def call(words, codes=(0,)):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"{words}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def noise_limit(tests):
    """Student's t of 59 degrees of freedom, 1 - 5 % / tests: the normal quantile, expanded."""
    z = statistics.NormalDist().inv_cdf(1 - 0.05 / max(tests, 1))
    return z + (z**3 + z) / (4 * 59)


def repeat(binary, jobs, sets, seed):
    """Paired changes of every metric on unseen seeds: percent and t, positive when better."""
    common = ["run", "s.yaml", "--quiet", "--seed", seed, "--replications", SEEDS, "--jobs", jobs]
    call([binary, *common, "-o", "json=base.json"])
    call([binary, *common, *(word for s in sets for word in ("--set", s)), "-o", "json=new.json"])
    found = json.loads(call([binary, "compare", "base.json", "new.json", "-o", "json"]))
    changes = {}
    for name, row in found["pairs"][0]["stages"][0]["metrics"].items():
        if name not in METRICS:
            continue
        difference = row["difference"]
        half = difference["high"] - difference["mean"]
        mean = difference["mean"] * (1 if name in LARGER else -1)
        percent = row["percent"]["mean"] if row.get("percent") else float("nan")
        changes[name] = (percent * (1 if name in LARGER else -1),
                         mean / half * T_95 if half else mean * 1e9)
    return changes


def main():
    binary = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    jobs = sys.argv[3] if len(sys.argv) > 3 else "1"
    decisions, claims, kept, unnamed, tests = {}, 0, 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for i in range(count):
            write_scenario(i)
            tuned = json.loads(call([binary, "tune", "tune.yaml", "--quiet", "--jobs", jobs,
                                     "-o", "json"], codes=(0, 4)))
            verdict = tuned["verdict"]
            decisions[verdict["decision"]] = decisions.get(verdict["decision"], 0) + 1
            print(f"{i} {tuned['goals'][0]}: {verdict['headline']}", flush=True)
            if not verdict["decision"].startswith("better"):
                continue
            claims += 1
            goal = tuned["goals"][0].split()[1]
            gain = next(row["gain"] for row in tuned["judged"] if row["metric"] == goal)
            changes = repeat(binary, jobs, tuned["set"], 1 + APART * i + UNSEEN)
            inside = gain["low"] <= changes[goal][0] <= gain["high"]
            kept += inside
            print(f"   on unseen seeds {changes[goal][0]:+.1f} %: "
                  f"{'inside' if inside else 'OUTSIDE'} [{gain['low']:+.1f}, {gain['high']:+.1f}]")
            named = {worse["metric"] for worse in tuned["worse"] if worse["load"] == "as given"}
            for name, (percent, t) in changes.items():
                tests += 1
                if t < -T_95 and name not in named:
                    unnamed.append(t)
                    print(f"   not named: {name} {percent:+.2f} % (t {t:.1f})")
    noise = sum(t < -noise_limit(tests) for t in unnamed)
    print(f"{count} scenarios: {decisions}\n{kept} of {claims} claims keep their interval on "
          f"{SEEDS} unseen seeds\n{len(unnamed)} of {tests} metrics worse beyond 95 % without a mention "
          f"(chance: {tests / 40:.1f}), {noise} beyond noise "
          f"(t below -{noise_limit(tests):.2f})")
    sys.exit(0 if kept >= 0.9 * claims and noise == 0 else 1)


if __name__ == "__main__":
    main()
