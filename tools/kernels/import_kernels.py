#!/usr/bin/env python3
"""Packs measured GPU operations into the table files that `latency_model: kernels` reads.

usage: import_kernels.py SYSTEMS/DATA GPU OUTPUT [--engine vllm|sglang] [--log FILE]

SYSTEMS/DATA is a folder of aiconfigurator's collections (Apache-2.0), `GPU/FAMILY/ENGINE/RELEASE/*.parquet`: that
of a wheel of aiconfigurator-core, or one that its collectors wrote on a machine of yours. It needs pyarrow. The log
names each table with its rows, its release, the cells that were filled, and each row that another engine gave.

A table file is `RSKT`, a version byte, and sections. A section is its name (length, bytes), its size (32 bits,
little endian), and its bytes: numbers of seven bits a byte, least significant first, signed ones with their sign in
the lowest bit:

    names of the key columns (a count, then length and bytes each), values of x, values of y (a count, then the
    values), the number of entries, then for each its keys, then x times y cells

A cell is round(100 ln(microseconds)), as the difference to the cell before it. So a time is off by 0.5 % at most.
"""

import argparse
import collections
import math
import pathlib
import re
import struct
import sys

STEP = 0.01  # of the logarithm of a time
DONORS = {"gemm/fp8_block": "sglang", "mla": "trtllm"}
QUANTISERS = "vllm"  # Finding a scale is the same kernel; SGLang's collection has two shapes of it.
LEAST_MODULE_US = 75  # of a layer with an indexer, one token: TensorRT-LLM's in a graph on B200 and B300
FEW_EXPERTS = 8  # at most: balanced
FAST_LAUNCHES = {"b200_sxm"}  # where vLLM's MLA modules were measured without the floor of launches


def read_rows(folder, name):
    import pyarrow.parquet

    path = folder / f"{name}_perf.parquet"
    return pyarrow.parquet.read_table(path).to_pylist() if path.exists() else []


def releases(data, gpu, family, engine):
    """Folders of an engine's releases, the newest first."""

    def order(path):
        return [int(part) for part in re.findall(r"\d+", path.name)]

    folder = data / gpu / family / engine
    found = [path for path in folder.glob("*") if any(path.glob("*.parquet"))] if folder.exists() else []
    return sorted(found, key=order, reverse=True)


def kernel(source):
    """The family of a kernel, from the many names that collections give it."""
    for part in ("marlin", "flashinfer_cutlass", "trtllm", "triton", "cutlass"):
        if part in source.lower():
            return part
    return "triton" if "moe" in source else "default"


class Table:
    """Times in microseconds by keys, x and y. The first time given for a cell stays."""

    def __init__(self, keys):
        self.keys = keys
        self.cells = {}
        self.origins = collections.Counter()
        self.extended = 0  # cells beyond what was measured, by lengthen()

    def add(self, key, x, y, latency_ms, origin):
        if latency_ms is None or not latency_ms > 0:
            return
        rows = self.cells.setdefault(tuple(key), {})
        if (x, y) not in rows:
            rows[(x, y)] = latency_ms * 1e3
            self.origins[origin] += 1

    def axes(self):
        """The axes of the table; x values that few of its entries have would be filled, so they go."""
        with_x = collections.Counter(x for rows in self.cells.values() for x in {x for x, _ in rows})
        most = max(with_x.values())
        xs = sorted(x for x, n in with_x.items() if 4 * n >= most)
        return xs, sorted({y for rows in self.cells.values() for _, y in rows})


def between(points, at):
    """Log-log between two points of a sorted list of pairs; beyond them in proportion above, constant below."""
    if at <= points[0][0]:
        return points[0][1]
    if at >= points[-1][0]:
        return points[-1][1] * at / points[-1][0]
    for (x0, t0), (x1, t1) in zip(points, points[1:]):
        if x0 <= at <= x1:
            share = math.log(at / x0) / math.log(x1 / x0) if x1 > x0 and x0 > 0 else 0
            return t0 * (t1 / t0) ** share
    raise AssertionError("unsorted")


def completed(rows, xs, ys):
    """All cells of a grid, those that nobody measured from their column, then from their row; how many."""
    grid = dict(rows)
    for y in ys:
        column = sorted((x, t) for (x, other), t in rows.items() if other == y)
        if not column:
            continue
        for x in xs:
            grid.setdefault((x, y), between(column, x))
    for x in xs:
        row = sorted((y, grid[(x, y)]) for y in ys if (x, y) in grid)
        for y in ys:
            grid.setdefault((x, y), between(row, y))
    return grid, sum((x, y) not in rows for x in xs for y in ys)


class Packer:
    def __init__(self, log):
        self.log = log
        self.sections = []

    @staticmethod
    def number(out, value):
        while value >= 128:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)

    @staticmethod
    def signed(out, value):
        Packer.number(out, value << 1 if value >= 0 else (-value << 1) - 1)

    def add(self, name, table):
        if not table.cells:
            return
        xs, ys = table.axes()
        out = bytearray()
        self.number(out, len(table.keys))
        for key in table.keys:
            self.number(out, len(key))
            out += key.encode()
        for values in (xs, ys):
            self.number(out, len(values))
            for value in values:
                self.number(out, value)
        self.number(out, len(table.cells))
        filled = 0
        for key, rows in sorted(table.cells.items()):
            for part in key:
                self.number(out, part)
            rows = {cell: t for cell, t in rows.items() if cell[0] in xs} or rows
            grid, missing = completed(rows, xs, ys)
            filled += missing
            before_row = before = 0
            for x in xs:
                for index, y in enumerate(ys):
                    code = round(math.log(grid[(x, y)]) / STEP)
                    self.signed(out, code - (before if index else before_row))
                    before = code
                    if not index:
                        before_row = code
        self.sections.append((name, bytes(out)))
        origins = ", ".join(f"{n} rows of {origin}" for origin, n in sorted(table.origins.items()))
        print(f"{name}: {len(table.cells)} entries of {len(xs)} x {len(ys)} cells, {origins}; {filled + table.extended} cells filled; "
              f"{len(out)} bytes", file=self.log)

    def write(self, path):
        out = bytearray(b"RSKT\x01")
        for name, content in self.sections:
            self.number(out, len(name))
            out += name.encode()
            out += struct.pack("<I", len(content))
            out += content
        path.write_bytes(out)
        print(f"{path.name}: {len(out)} bytes", file=self.log)


def gemm(data, gpu, engine, packer):
    tables = collections.defaultdict(lambda: Table(["n", "k"]))
    for source in (engine, "sglang", "trtllm"):
        for folder in releases(data, gpu, "gemm", source)[: None if source == engine else 1]:
            for r in read_rows(folder, "gemm"):
                name = "gemm/" + r["gemm_dtype"]
                donor = DONORS.get(name, engine)
                donated = source == donor != engine
                if source == engine and donor != engine and releases(data, gpu, "gemm", donor):
                    continue  # Measured without CUDA graphs: 60 us for the least product (H200), 274 (B200).
                if source == engine or donated:
                    tables[name].add((r["n"], r["k"]), r["m"], 1, r["latency"], f"{source} {folder.name}")
    if "gemm/fp8_block" not in tables:
        for folder in releases(data, gpu, "gemm", engine):
            for r in read_rows(folder, "gemm"):
                if r["gemm_dtype"] == "fp8_block":
                    tables["gemm/fp8_block"].add((r["n"], r["k"]), r["m"], 1, r["latency"], f"{engine} {folder.name}")
    for name, table in sorted(tables.items()):
        packer.add(name, table)


def quantize(data, gpu, engine, packer):
    for name in ("computescale", "scale_matrix"):
        table = Table(["k"])
        source = QUANTISERS if releases(data, gpu, "quantize", QUANTISERS) else engine
        for folder in releases(data, gpu, "quantize", source):
            for r in read_rows(folder, name):
                table.add((r["k"],), r["m"], 1, r["latency"], f"{source} {folder.name}")
        packer.add("quantize/" + name, table)


def attention(data, gpu, engine, packer):
    prefer = {"trtllm": 0, "flash_attn": 1, "flashinfer": 2, "triton": 3}

    def rank(row):
        return next((n for part, n in prefer.items() if part in row["kernel_source"]), 4)

    for phase, name in (("context", "context_attention"), ("decode", "generation_attention")):
        tables = collections.defaultdict(lambda: Table(["heads", "kv_heads", "window"]))
        for folder in releases(data, gpu, "attention", engine)[:1]:
            for r in sorted(read_rows(folder, name), key=rank):
                kv = "fp8" if "fp8" in r["kv_cache_dtype"] else "bf16"
                y = r["isl"] if phase == "context" else r["step"] + 1
                kv_heads = r["num_key_value_heads"] or r["num_heads"]
                tables[f"{phase}/{kv}/{r['head_dim']}"].add(
                    (r["num_heads"], kv_heads, max(0, r.get("window_size") or 0)), r["batch_size"], y, r["latency"],
                    f"{engine} {folder.name} {r['kernel_source']}")
        for key, table in sorted(tables.items()):
            packer.add(key, table)


def mla(data, gpu, engine, packer):
    # SGLang's collection has attention without its projections, or with those of several nodes.
    donor = engine if gpu in FAST_LAUNCHES and engine == "vllm" else DONORS["mla"]
    source = donor if releases(data, gpu, "mla", donor) else engine
    for phase, name in (("context", "mla_context_module"), ("decode", "mla_generation_module")):
        tables = collections.defaultdict(lambda: Table(["heads"]))
        for folder in releases(data, gpu, "mla", source):
            for r in read_rows(folder, name):
                if "DeepseekV3" not in r["architecture"]:
                    continue
                kv = "fp8" if "fp8" in r["kv_cache_dtype"] else "bf16"
                y = r["isl"] if phase == "context" else r["step"]
                tables[f"mla_{phase}/{kv}/{r['gemm_type']}"].add(
                    (r["num_heads"],), r["batch_size"], y, r["latency"], f"{source} {folder.name}")
        for key, table in sorted(tables.items()):
            packer.add(key, table)


def gated_delta_nets(data, gpu, engine, packer):
    """The convolution and the rule of a layer, of prompts and of decodes; its projections are products."""
    parts = {}
    for folder in releases(data, gpu, "linear_attention", engine)[:1]:
        for r in read_rows(folder, "gdn"):
            if (r["head_k_dim"], r["head_v_dim"], r["d_conv"]) != (128, 128, 4):
                continue
            step = "convolution" if "conv1d" in r["kernel_source"] else "rule"
            cell = (r["phase"], r["num_k_heads"], r["num_v_heads"], r["batch_size"], r["seq_len"])
            parts.setdefault(cell, {}).setdefault(step, (r["latency"], f"{engine} {folder.name}"))
    for phase, name in (("context", "gdn_context"), ("generation", "gdn_decode")):
        table = Table(["k_heads", "v_heads"])
        for (of, k, v, batch, length), kernels in sorted(parts.items()):
            if of == phase and len(kernels) == 2:
                table.add((k, v), batch, length, sum(ms for ms, _ in kernels.values()), kernels["rule"][1])
        packer.add(name, table)


def sparse_mla(data, gpu, engine, packer):
    """Whole layers of latent attention with an indexer (DeepSeek-V3.2, GLM-5), all but their norms."""
    if engine != "vllm":
        return  # SGLang changes its kernel with the length of the prompt.
    hidden = {"DeepseekV32ForCausalLM": 7168, "GlmMoeDsaForCausalLM": 6144}
    # vLLM's decodes have a floor of launches: 158 us for one sequence on an H200, SGLang's 82 with the same kernels.
    sources = {"context": (engine, "dsa_context_module"), "decode": ("sglang", "dsa_generation_module")}
    for phase, (source, name) in sources.items():
        tables = collections.defaultdict(lambda: Table(["heads", "hidden"]))
        for folder in releases(data, gpu, "sparse_attention", source)[:1]:
            rows = [r for r in read_rows(folder, name) if r["op_name"] == name and (phase == "decode" or not r["step"])]
            batches = collections.defaultdict(set)  # A length with few sizes of a batch would be made up for the others.
            for r in rows:
                batches[r["step"]].add(r["batch_size"])
            for r in sorted(rows, key=lambda r: "fa3" in r["kernel_source"]):
                # Larger decodes are beyond SGLang's graphs: their times are those of launches, 1.5 ms.
                if len(batches[r["step"]]) < 4 or phase == "decode" and r["batch_size"] > 256:
                    continue
                kv = "fp8" if "fp8" in r["kv_cache_dtype"] else "bf16"
                y = r["isl"] if phase == "context" else r["step"]
                tables[f"dsa_{phase}/{kv}/{r['gemm_type']}"].add(
                    (r["num_heads"], hidden[r["architecture"]]), r["batch_size"], y, r["latency"],
                    f"{source} {folder.name}")
        for key, table in sorted(tables.items()):
            for rows in table.cells.values():
                if phase == "context":
                    table.extended += without_launches(rows)
                    continue
                before = len(rows)
                lengthen(rows)
                table.extended += len(rows) - before
            packer.add(key, table)


def without_launches(rows):
    """Makes times that are bound by launches those of the first longer prompt in proportion; how many.

    The least of vLLM's, for one token, takes 1.5 ms on an H200 and on a B300; TensorRT-LLM's in a graph takes 0.07.
    In an engine, launches of a prompt's layers run ahead of the GPU."""
    floor = 1.3 * min(rows.values())
    replaced = 0
    for x in {x for x, _ in rows}:
        first = min((y for (other, y), t in rows.items() if other == x and t > floor), default=None)
        for y in sorted(y for (other, y) in rows if other == x and first is not None and y < first):
            rows[(x, y)] = max(rows[(x, first)] * y / first, LEAST_MODULE_US)
            replaced += 1
    return replaced


def lengthen(rows):
    """Goes on to the largest batch of any length by the slope of the last two, for times that hold a fixed part."""
    largest = max(x for x, _ in rows)
    for y in {y for _, y in rows}:
        column = sorted((x, t) for (x, other), t in rows.items() if other == y)
        while len(column) >= 2 and column[-1][0] < largest:
            (x0, t0), (x1, t1) = column[-2:]
            column.append((2 * x1, t1 + max(0, t1 - t0) / (x1 - x0) * x1))
            rows[(2 * x1, y)] = column[-1][1]


def moe(data, gpu, engine, packer):
    tables = collections.defaultdict(lambda: Table(["hidden", "inter", "topk", "experts", "tp", "ep"]))
    uneven = ("power_law_1.2", "power_law_1.01", "balanced")  # as experts are drawn, else what there is

    def order(row):
        # Mixtral's eight are drawn nearly evenly (arXiv 2401.04088, section 5). Balanced rows deal tokens out, so that four
        # touch all eight experts: as many as draws do from two for each expert on.
        dealt = row["num_experts"] <= FEW_EXPERTS and row["num_tokens"] * row["topk"] >= 2 * row["num_experts"]
        return (uneven[::-1] if dealt else uneven).index(row["distribution"])

    # Weights of MXFP4 that Triton widens first are no kernel of SGLang's: its triton_kernel is OpenAI's, as vLLM's.
    widened = False
    for source in (engine, "vllm") if engine == "sglang" else (engine,):
        for folder, r in ((folder, r) for folder in releases(data, gpu, "moe", source)
                          for r in sorted(read_rows(folder, "moe"), key=order)):
            openai = r["moe_dtype"] == "w4a16_mxfp4" and kernel(r["kernel_source"]) == "triton"
            if engine == "sglang" and openai and source == engine:
                widened = True
                continue
            if source != engine and not (openai and widened):
                continue
            key = tuple(r[c] for c in ("hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"))
            tables[f"moe/{r['moe_dtype']}/{kernel(r['kernel_source'])}"].add(
                key, r["num_tokens"], 1, r["latency"], f"{source} {folder.name} {r['distribution']}")
    for name, table in sorted(tables.items()):
        packer.add(name, table)


def collectives(data, gpu, engine, packer):
    tables = collections.defaultdict(lambda: Table(["gpus"]))
    for folder in releases(data, gpu, "comm", engine):
        for r in read_rows(folder, "custom_allreduce"):
            mode = "graph" if "graph" in r["kernel_source"] else "eager"
            tables["all_reduce/" + mode].add((r["num_gpus"],), r["message_size"], 1, r["latency"],
                                             f"{engine} {folder.name}")
    for folder in releases(data, gpu, "comm", "nccl")[:1]:
        for r in read_rows(folder, "nccl"):
            if r["nccl_dtype"] == "half":
                tables["nccl/" + r["op_name"]].add((r["num_gpus"],), r["message_size"], 1, r["latency"],
                                                   f"nccl {folder.name}")
    for name, table in sorted(tables.items()):
        packer.add(name, table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("gpu")
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--engine", default="vllm")
    parser.add_argument("--log", type=argparse.FileType("w"), default=sys.stdout)
    args = parser.parse_args()
    if not (args.data / args.gpu).is_dir():
        parser.error(f"{args.data / args.gpu} is no folder")
    packer = Packer(args.log)
    for family in (gemm, quantize, attention, mla, moe, collectives, gated_delta_nets, sparse_mla):
        family(args.data, args.gpu, args.engine, packer)
    if not packer.sections:
        parser.error(f"no rows of {args.engine} under {args.data / args.gpu}")
    packer.write(args.output)


if __name__ == "__main__":
    main()
