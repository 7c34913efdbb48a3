#!/usr/bin/env python3
"""How far simulated engines are from measured closed loops, by GPU, model, release and parallelism:

    bench/closed_loops.py [build/release/routesim] [--engine vllm] [--latency-model kernels] [--seeds 1]
                          [--rows FILE] [--check README]

Simulates every row of scenarios/measured/closed_loops of one engine and prints a table in Markdown: the
median and the mean of absolute errors in percent, and the mean error. --rows writes what was simulated
beside what was measured. --check compares the table with the one in a file; exit code 1 when it differs.
"""
import argparse
import concurrent.futures
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "scenarios/measured/closed_loops"
GPUS = {"h100_sxm": "H100-SXM", "h200_sxm": "H200"}
MODELS = {"meta-llama/Llama-3.1-70B": "Llama-3.1-70B-FP8"}  # The others by their own names.

# A burst of C, 10 C prompts, lengths uniform in 0.8 to 1.0 of the label, or all as the label says.
SCENARIO = """name: closed-loop
seed: {seed}
workload:
  vllm_bench:
    dataset_name: random
    random: {{input_len: {isl}, output_len: {osl}, range_ratio: {spread}}}
    num_prompts: {prompts}
    request_rate: inf
    max_concurrency: {concurrency}
cluster:
  pools:
  - name: servers
    replicas: 1
    accelerator: {gpu}
    model: {model}
    tensor_parallel: {tp}
    kv_cache_dtype: {kv}
    latency_model: {latency_model}
    engine: {engine}
routing: {{balancer: k8s-service}}
"""


def vllm_engine(row):
    """Rows without a release are of October 2025. The scripts of gpt-oss set VLLM_MXFP4_USE_MARLIN."""
    release = row["engine"].partition(" ")[2]
    return {"preset": "2026-H1" if release else "2025-H2", "enable_prefix_caching": False,
            "moe_backend": "marlin" if "gpt-oss" in row["model"] else "auto"}


def sglang_engine(row):
    """DeepSeek's flags as in InferenceX's dsr1_fp8_h200 scripts; SGLang's defaults elsewhere."""
    if "DeepSeek" not in row["model"]:
        return {"kind": "sglang", "enable_prefix_caching": False}
    most = 512 if (row["isl"], row["osl"]) == ("1024", "1024") else 256
    return {"kind": "sglang", "enable_prefix_caching": False, "max_num_seqs": most, "gpu_memory_utilization": 0.82,
            "sglang": {"chunked_prefill_size": 32768, "max_prefill_tokens": 32768, "cuda_graph_max_bs": most}}


def text_of(row, args, seed):
    # Rows of Qwen3-32B with SGLang come in rounds: TTFT is that of C prompts at once, so all lengths are equal.
    rounds = row["engine"].startswith("sglang") and "Qwen3-32B" in row["model"]
    isl, osl = (int(row[side]) if rounds else round(0.9 * int(row[side])) for side in ("isl", "osl"))
    return SCENARIO.format(
        seed=seed, isl=isl, osl=osl, spread=0 if rounds else round(1 / 9, 6), prompts=10 * int(row["concurrency"]),
        concurrency=row["concurrency"], gpu=GPUS[row["gpu"]], model=MODELS.get(row["model"], row["model"]), tp=row["tp"],
        latency_model=args.latency_model,
        engine=json.dumps(sglang_engine(row) if row["engine"].startswith("sglang") else vllm_engine(row)),
        # One H200 holds 64 sequences of the 70B model only with an fp8 cache.
        kv="fp8" if "Llama" in row["model"] and row["gpu"] == "h200_sxm" else "auto")


def simulate(row, args, folder):
    """TTFT and TPOT in ms, means over the seeds."""
    ttft, tpot = [], []
    for seed in range(1, args.seeds + 1):
        path = folder / f"{row['id']}-{seed}.yaml"
        path.write_text(text_of(row, args, seed))
        done = subprocess.run([args.routesim, "run", str(path), "--output", "json", "--no-capacity", "--quiet"],
                              capture_output=True, text=True, check=False)
        if not done.stdout:
            sys.exit(f"{row['id']}: {done.stderr}")
        stage = json.loads(done.stdout)["variants"][0]["stages"][0]
        latency = stage["successes"]["latency"]
        ttft.append(latency["time_to_first_token"]["mean"] * 1e3)
        tpot.append(latency["time_per_output_token"]["mean"] * 1e3)
    return statistics.mean(ttft), statistics.mean(tpot)


def table(results):
    groups = {"all": []}
    for row, simulated in results:
        errors = [100 * (simulated[i] / float(row[name]) - 1) for i, name in enumerate(("ttft_ms", "tpot_ms"))]
        name = " | ".join([GPUS[row["gpu"]], row["model"].split("/")[1], row["engine"], f"tp{row['tp']}"])
        groups.setdefault(name, []).append(errors)
        groups["all"].append(errors)
    lines = ["| GPU | model | engine | parallelism | n | TPOT median | mean | bias | TTFT median | mean | bias |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for name, errors in sorted(groups.items(), key=lambda item: (item[0] == "all", item[0])):
        cells = []
        for which in (1, 0):
            column = [e[which] for e in errors]
            size = [abs(e) for e in column]
            cells += [f"{statistics.median(size):.1f}", f"{statistics.mean(size):.1f}", f"{statistics.mean(column):+.1f}"]
        lines.append(f"| {name if name != 'all' else 'all |  |  | '} | {len(errors)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("routesim", nargs="?", default=str(ROOT / "build/release/routesim"))
    parser.add_argument("--engine", default="vllm", choices=["vllm", "sglang"])
    parser.add_argument("--latency-model", default="kernels", choices=["kernels", "roofline", "auto"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=argparse.FileType("w"))
    parser.add_argument("--check", type=pathlib.Path)
    args = parser.parse_args()
    with (DATA / "closed_loops.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["engine"].startswith(args.engine)]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        results = list(zip(rows, pool.map(lambda row: simulate(row, args, pathlib.Path(folder)), rows)))
    if args.rows:
        writer = csv.writer(args.rows, lineterminator="\n")
        writer.writerow(["id", "ttft_ms", "simulated_ttft_ms", "tpot_ms", "simulated_tpot_ms"])
        for row, (ttft, tpot) in results:
            writer.writerow([row["id"], row["ttft_ms"], f"{ttft:.4g}", row["tpot_ms"], f"{tpot:.4g}"])
    text = table(results)
    print(text, end="")
    if args.check and text not in args.check.read_text():
        sys.exit(f"{args.check} does not have this table")


if __name__ == "__main__":
    main()
