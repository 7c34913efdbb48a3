"""Measures what published sources leave open: decode attention, experts, products, and copies beside compute.

Usage: kernels.py FOLDER [beside,decode,groups,fa3,experts,products]. Writes one CSV file per section; the README of
scenarios/measured/gpu_kernels explains them. Needs PyTorch with CUDA and Triton (2.11 and 3.6 made those files) and
takes three minutes. Section fa3 wants FA3=PATH, the _vllm_fa3_C.abi3.so of a vLLM wheel (0.24.0). Attention and
experts are first checked against plain products. A time is the median of several replays of a CUDA graph, so launches
from Python do not count.
"""
import csv
import os
import statistics
import sys
import threading
import time

import torch
import triton
import triton.language as tl

OUT = sys.argv[1]
NAME = torch.cuda.get_device_name()
START = time.time()
torch.manual_seed(1)


def say(*a):
    print(f"[{time.time() - START:6.1f}s]", *a, flush=True)


def table(name, fields):
    f = open(os.path.join(OUT, name + ".csv"), "w", newline="")
    w = csv.writer(f, lineterminator="\n")
    w.writerow(["device"] + fields)
    def row(*v):
        w.writerow([NAME] + [f"{x:.4g}" if isinstance(x, float) else x for x in v])
        f.flush()
    return row


def graph_us(fns, rounds=7, target_ms=15.0):
    """Median microseconds of one call. `fns` are calls over different inputs, replayed in turn from one graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for f in fns:
            f()
        torch.cuda.synchronize()
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record(); [f() for f in fns]; b.record(); torch.cuda.synchronize()
        one = max(a.elapsed_time(b), 0.01) / len(fns)
        loops = max(1, min(400, int(target_ms / one / len(fns))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(loops):
                for f in fns:
                    f()
        graph.replay(); torch.cuda.synchronize()
        took = []
        for _ in range(rounds):
            a.record(); graph.replay(); b.record(); torch.cuda.synchronize()
            took.append(a.elapsed_time(b) * 1e3 / loops / len(fns))
    return statistics.median(took)


# --- decode attention -------------------------------------------------------------------------------------------------
@triton.jit
def _decode(Q, K, V, TABLE, LENGTH, PART, LSE, table_stride, scale,
            G: tl.constexpr, D: tl.constexpr, HKV: tl.constexpr, SPLITS: tl.constexpr, PAGE: tl.constexpr,
            TILE: tl.constexpr, BATCH_FIRST: tl.constexpr, REVERSE: tl.constexpr):
    if BATCH_FIRST:
        seq = tl.program_id(0); split = tl.program_id(2)
    else:
        split = tl.program_id(0); seq = tl.program_id(2)
    head = tl.program_id(1)
    length = tl.load(LENGTH + seq)
    tiles = tl.cdiv(tl.cdiv(length, TILE), SPLITS)
    first = split * tiles * TILE
    last = tl.minimum(length, first + tiles * TILE)
    g = tl.arange(0, 16)
    d = tl.arange(0, D)
    q = tl.load(Q + (seq * HKV * G + head * G + g[:, None]) * D + d[None, :], mask=g[:, None] < G, other=0.0)
    top = tl.full([16], -1e30, tl.float32)
    total = tl.zeros([16], tl.float32)
    acc = tl.zeros([16, D], tl.float32)
    for step in range(0, tl.cdiv(tl.maximum(last - first, 0), TILE)):
        if REVERSE:
            at = first + (tl.cdiv(last - first, TILE) - 1 - step) * TILE
        else:
            at = first + step * TILE
        n = at + tl.arange(0, TILE)
        ok = n < last
        page = tl.load(TABLE + seq * table_stride + n // PAGE, mask=ok, other=0).to(tl.int64)
        row = (page * PAGE + n % PAGE) * HKV + head
        k = tl.load(K + row[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        v = tl.load(V + row[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(ok[None, :], s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        keep = tl.exp(top - new)
        total = total * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    out = ((seq * HKV + head) * SPLITS + split) * 16
    tl.store(PART + (out + g[:, None]) * D + d[None, :], acc / tl.maximum(total, 1e-30)[:, None])
    tl.store(LSE + out + g, top + tl.log(tl.maximum(total, 1e-30)))


@triton.jit
def _merge(PART, LSE, OUT_, G: tl.constexpr, D: tl.constexpr, HKV: tl.constexpr, SPLITS: tl.constexpr,
           S2: tl.constexpr):
    seq = tl.program_id(0); h = tl.program_id(1)
    head = h // G; g = h % G
    s = tl.arange(0, S2)
    d = tl.arange(0, D)
    base = ((seq * HKV + head) * SPLITS + s) * 16 + g
    lse = tl.load(LSE + base, mask=s < SPLITS, other=-1e30)
    w = tl.exp(lse - tl.max(lse, 0))
    w = w / tl.sum(w, 0)
    part = tl.load(PART + base[:, None] * D + d[None, :], mask=(s < SPLITS)[:, None], other=0.0)
    tl.store(OUT_ + (seq * HKV * G + h) * D + d, tl.sum(part * w[:, None], 0).to(tl.bfloat16))


class Decode:
    """One layer's decode attention of `batch` sequences over a paged cache in bf16."""
    PAGE = 16

    def __init__(self, heads, kv_heads, dim, pool_tokens):
        self.h, self.hkv, self.d = heads, kv_heads, dim
        self.pages = pool_tokens // self.PAGE
        self.k = torch.randn(self.pages * self.PAGE, kv_heads, dim, device="cuda", dtype=torch.bfloat16)
        self.v = torch.randn_like(self.k)

    def case(self, batch, context, shared):
        """Block tables in random order; the first `shared` tokens are the same pages for all."""
        per = (context + self.PAGE - 1) // self.PAGE
        common = shared // self.PAGE
        order = torch.randperm(self.pages, device="cuda", dtype=torch.int64)
        need = common + batch * (per - common)
        assert need <= self.pages, (need, self.pages)
        t = torch.empty(batch, per, device="cuda", dtype=torch.int32)
        t[:, :common] = order[:common].int()
        t[:, common:] = order[common:need].view(batch, per - common).int()
        length = torch.full((batch,), context, device="cuda", dtype=torch.int32)
        q = torch.randn(batch, self.h, self.d, device="cuda", dtype=torch.bfloat16)
        return q, t, length

    def run(self, case, splits, batch_first, tile=64, buffers=None, reverse=False, warps=4):
        q, t, length = case
        batch = q.shape[0]
        part, lse, out = buffers
        g = self.h // self.hkv
        grid = (batch, self.hkv, splits) if batch_first else (splits, self.hkv, batch)
        _decode[grid](q, self.k, self.v, t, length, part, lse, t.stride(0), self.d ** -0.5, G=g, D=self.d, HKV=self.hkv,
                      SPLITS=splits, PAGE=self.PAGE, TILE=tile, BATCH_FIRST=batch_first, REVERSE=reverse,
                      num_warps=warps, num_stages=3)
        _merge[(batch, self.h)](part, lse, out, G=g, D=self.d, HKV=self.hkv, SPLITS=splits,
                                S2=triton.next_power_of_2(splits), num_warps=2)
        return out

    def buffers(self, batch, splits):
        return (torch.empty(batch, self.hkv, splits, 16, self.d, device="cuda", dtype=torch.float32),
                torch.empty(batch, self.hkv, splits, 16, device="cuda", dtype=torch.float32),
                torch.empty(batch, self.h, self.d, device="cuda", dtype=torch.bfloat16))

    def check(self):
        case = self.case(3, 1000, 320)
        out = self.run(case, 4, True, buffers=self.buffers(3, 4)).float()
        q, t, length = case
        for i in range(3):
            n = torch.arange(1000, device="cuda")
            row = t[i, n // self.PAGE].long() * self.PAGE + n % self.PAGE
            k = self.k[row].float().repeat_interleave(self.h // self.hkv, 1)
            v = self.v[row].float().repeat_interleave(self.h // self.hkv, 1)
            s = torch.einsum("hd,nhd->hn", q[i].float(), k) * self.d ** -0.5
            ref = torch.einsum("hn,nhd->hd", s.softmax(-1), v)
            err = ((out[i] - ref).norm() / ref.norm()).item()
            assert err < 2e-2, err
        return err

    def best(self, batch, context, shared):
        """(us, splits, order) of the fastest split count; four cases in turn, so that L2 does not keep the last one."""
        copies = 1 if batch * context * self.hkv * self.d * 4 > 200e6 else 4
        cases = []
        for _ in range(copies):
            cases.append(self.case(batch, context, shared))
        best = None
        tiles = (context + 63) // 64
        fill = max(1, round(2 * 132 / (batch * self.hkv)))
        for splits in sorted({max(1, min(tiles, fill * f // 2)) for f in (1, 2, 4, 8)} | {1}):
            if splits > 256:
                continue
            buf = self.buffers(batch, splits)
            for order in (True, False):
                calls = [lambda c=c: self.run(c, splits, order, buffers=buf) for c in cases]
                us = graph_us(calls, rounds=5, target_ms=4)
                if best is None or us < best[0]:
                    best = (us, splits, "batch-first" if order else "split-first")
        return best


def decode_section():
    row = table("decode_attention", ["heads", "kv_heads", "head_dim", "batch", "context", "shared_prefix", "us",
                                     "kv_bytes", "gb_per_s", "splits", "order"])
    for heads, kv, dim, label in ((32, 4, 128, "qwen3-32b tp2"), (32, 8, 128, "llama-3.1-8b")):
        a = Decode(heads, kv, dim, 3_000_000 if kv == 4 else 1_500_000)
        say("decode", label, "error", a.check())
        def one(batch, context, shared):
            us, splits, order = a.best(batch, context, shared)
            size = batch * context * kv * dim * 4
            row(heads, kv, dim, batch, context, shared, us, size, size / us / 1e3, splits, order)
        for batch in (1, 2, 4, 8, 16, 32, 64):
            for context in (1024, 4096, 8192, 16384, 32768, 65536):
                if batch * context <= 1_100_000:
                    one(batch, context, 0)
        if kv == 4:
            for batch in (8, 32, 64):
                for shared in (1024, 2048, 4096, 6144, 8192, 12288, 16384, 24576, 32768):
                    one(batch, shared + 1024, shared)
                    one(batch, shared + 1024, 0)
        say("decode", label, "done")
        del a


def shared_case(a, batch, readers, prefix, own):
    """Sequences in random order, `readers` of them on each prefix; returns the case and its distinct tokens."""
    lengths = [prefix + o for o in own]
    order = torch.randperm(a.pages, device="cuda").int()
    t = torch.zeros(batch, (max(lengths) + 15) // 16, device="cuda", dtype=torch.int32)
    group = torch.randperm(batch) // readers
    heads, at = {}, 0
    for i in range(batch):
        p = prefix // 16
        g = int(group[i])
        if g not in heads:
            heads[g] = order[at:at + p]
            at += p
        t[i, :p] = heads[g]
        rest = (lengths[i] + 15) // 16 - p
        t[i, p:p + rest] = order[at:at + rest]
        at += rest
    assert at <= a.pages, at
    q = torch.randn(batch, a.h, a.d, device="cuda", dtype=torch.bfloat16)
    return (q, t, torch.tensor(lengths, device="cuda", dtype=torch.int32)), len(heads) * prefix + sum(own)


def groups_section():
    row = table("decode_attention_groups", ["heads", "kv_heads", "head_dim", "batch", "readers", "prefix", "own_tokens",
                                            "kernel", "unshared_us", "shared_us", "all_tokens", "unique_tokens",
                                            "price_of_shared"])
    for kv in (4, 8):
        a = Decode(32, kv, 128, 1_600_000 if kv == 4 else 1_300_000)
        case = a.case(3, 1000, 320)
        x = a.run(case, 4, True, buffers=a.buffers(3, 4)).float()
        y = a.run(case, 1, False, tile=128, buffers=a.buffers(3, 1), reverse=True, warps=8).float()
        assert (x - y).norm() / x.norm() < 2e-2
        for batch in (32, 48):
            own = [int(v) for v in torch.randint(100, 2100, (batch,))]
            for prefix in (2048, 4096, 6000 // 16 * 16, 8192, 12288, 16000, 24000):
                if kv == 8 and batch * prefix > 1_150_000:
                    continue
                total = batch * prefix + sum(own)
                # FlashAttention 3 makes one split from 106 blocks on (hopper/heuristics.h).
                kernels = {
                    "one split from the end": dict(splits=1, tile=128, reverse=True, warps=8),
                    "four splits from the end": dict(splits=4, tile=64, reverse=True, warps=4),
                    "four splits from the start": dict(splits=4, tile=64, reverse=False, warps=4)}
                for name, k in kernels.items():
                    buf = a.buffers(batch, k["splits"])
                    def us(c):
                        return graph_us([lambda: a.run(c, k["splits"], False, tile=k["tile"], buffers=buf,
                                                       reverse=k["reverse"], warps=k["warps"])], rounds=5, target_ms=5)
                    plain = us(shared_case(a, batch, 1, prefix, own)[0])
                    for readers in (2, 4, 8, batch):
                        c, unique = shared_case(a, batch, readers, prefix, own)
                        t = us(c)
                        price = 1 - (plain - t) / (plain * (total - unique) / total)
                        row(32, kv, 128, batch, readers, prefix, sum(own) // batch, name, plain, t, total, unique,
                            price)
        say("groups", kv, "done")
        del a
        torch.cuda.empty_cache()


class FlashAttention3(Decode):
    """The same with vLLM's own kernel, scheduled as its FlashAttention backend does inside CUDA graphs."""

    MAX_SPLITS = 32  # flash_attn_max_num_splits_for_cuda_graph

    def __init__(self, *shape):
        super().__init__(*shape)
        self.plans, self.starts = {}, {}

    def run(self, case, splits=None, batch_first=None, **_):
        q, t, length = case
        batch, longest = q.shape[0], t.shape[1] * self.PAGE
        ops = torch.ops._vllm_fa3_C
        start = self.starts.setdefault(batch, torch.arange(batch + 1, device="cuda", dtype=torch.int32))
        key = t.data_ptr()
        if key not in self.plans:
            self.plans[key] = ops.get_scheduler_metadata(
                batch, 1, longest, self.h, self.hkv, self.d, self.d, torch.bfloat16, length, start, None, None, None,
                None, self.PAGE, 0, True, -1, -1, False, self.MAX_SPLITS, None, 0)
        k = self.k.view(self.pages, self.PAGE, self.hkv, self.d)
        v = self.v.view(self.pages, self.PAGE, self.hkv, self.d)
        out = torch.empty_like(q)
        none = [None] * 8  # No batch index, padding, rotary embedding and scales.
        rest = [self.d ** -0.5, True, -1, -1, 0.0, True, self.plans[key], self.MAX_SPLITS, None, 0, None, 1, 0, None]
        out, *_ = ops.fwd(q, k, v, None, None, None, out, start, None, None, None, length, 1, longest, t, *none, *rest)
        return out


def fa3_section():
    torch.ops.load_library(os.environ["FA3"])
    shape = ["heads", "kv_heads", "head_dim", "batch"]
    alone = table("flash_attention", [*shape, "context", "us", "kv_bytes", "gb_per_s"])
    row = table("flash_attention_groups", [*shape, "readers", "prefix", "own_tokens", "kernel", "unshared_us",
                                           "shared_us", "all_tokens", "unique_tokens", "price_of_shared"])
    for heads, kv, dim in ((32, 4, 128), (32, 8, 128), (64, 8, 64)):
        a = FlashAttention3(heads, kv, dim, 2_400_000 if kv * dim == 512 else 1_300_000)
        say("fa3", heads, kv, dim, "error", a.check())
        for batch in (1, 2, 4, 8, 16, 32, 64):
            for context in (1024, 4096, 8192, 16384, 32768, 65536):
                if batch * context > 1_100_000:
                    continue
                size = batch * context * kv * dim * 4
                cases = [a.case(batch, context, 0) for _ in range(1 if size > 200e6 else 4)]
                us = graph_us([lambda c=c: a.run(c) for c in cases], rounds=5, target_ms=4)
                alone(heads, kv, dim, batch, context, us, size, size / us / 1e3)
                a.plans.clear()
        for batch in (32, 48):
            own = [int(v) for v in torch.randint(100, 2100, (batch,))]
            for prefix in (2048, 4096, 6000, 8192, 12288, 16000, 24000):
                total = batch * prefix + sum(own)
                if total > 1_250_000:
                    continue
                plain = None
                for readers in (1, 2, 4, 8, batch):
                    c, unique = shared_case(a, batch, readers, prefix, own)
                    t = graph_us([lambda: a.run(c)], rounds=5, target_ms=5)
                    a.plans.clear()
                    if readers == 1:
                        plain = t
                        continue
                    row(heads, kv, dim, batch, readers, prefix, sum(own) // batch, "FlashAttention 3", plain, t, total,
                        unique, 1 - (plain - t) / (plain * (total - unique) / total))
        say("fa3", heads, kv, dim, "done")
        del a
        torch.cuda.empty_cache()


# --- mixture of experts -----------------------------------------------------------------------------------------------
@triton.jit
def _grouped(X, W, Y, ROWS, EXPERT, TILES, hidden, width, x_divisor,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One tile of BM rows of one expert times BN of its columns; ROWS holds row numbers, -1 where a tile is padded."""
    pid = tl.program_id(0)
    columns = tl.cdiv(width, BN)
    tile = pid // columns
    if tile >= tl.load(TILES):
        return
    expert = tl.load(EXPERT + tile).to(tl.int64)
    r = tl.load(ROWS + tile * BM + tl.arange(0, BM))
    ok = r >= 0
    n = (pid % columns) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x = X + (tl.where(ok, r, 0) // x_divisor).to(tl.int64)[:, None] * hidden + k[None, :]
    w = W + expert * width * hidden + n.to(tl.int64)[None, :] * hidden + k[:, None]
    acc = tl.zeros([BM, BN], tl.float32)
    for at in range(0, hidden, BK):
        inside = at + k < hidden
        a = tl.load(x + at, mask=ok[:, None] & inside[None, :], other=0.0)
        b = tl.load(w + at, mask=(n < width)[None, :] & inside[:, None], other=0.0)
        acc += tl.dot(a, b)
    y = Y + tl.where(ok, r, 0).to(tl.int64)[:, None] * width + n[None, :]
    tl.store(y, acc.to(tl.bfloat16), mask=ok[:, None] & (n < width)[None, :])


def route(tokens, experts, top, bm):
    """Uniformly random experts; rows sorted by expert and padded to tiles of `bm`."""
    chosen = torch.rand(tokens, experts, device="cuda").topk(top, 1).indices.flatten()
    order = torch.argsort(chosen, stable=True)
    count = torch.bincount(chosen, minlength=experts)
    tiles = (count + bm - 1) // bm
    total = int(tiles.sum())
    expert = torch.repeat_interleave(torch.arange(experts, device="cuda"), tiles).int()
    rows = torch.full((total * bm,), -1, device="cuda", dtype=torch.int32)
    start = (tiles.cumsum(0) - tiles) * bm
    offset = torch.arange(len(order), device="cuda") - (count.cumsum(0) - count)[chosen[order]]
    rows[start[chosen[order]] + offset] = order.int()
    return chosen, rows, expert, torch.tensor([total], device="cuda", dtype=torch.int32), total, int((count > 0).sum())


def grouped(x, w, y, routing, divisor, bm, bn, bk, warps, stages):
    _, rows, expert, tiles, total, _ = routing
    width, hidden = w.shape[1], w.shape[2]
    _grouped[(total * triton.cdiv(width, bn),)](x, w, y, rows, expert, tiles, hidden, width, divisor,
                                                 BM=bm, BN=bn, BK=bk, num_warps=warps, num_stages=stages)


def experts_section():
    row = table("experts", ["experts", "per_token", "hidden", "intermediate", "tokens", "experts_touched", "us",
                            "weight_bytes_touched", "gb_per_s", "tflops", "rows_per_tile", "columns", "k"])
    for experts, top, hidden, inner, label in ((128, 8, 2048, 768, "qwen3-30b-a3b"),
                                               (128, 4, 2880, 2880, "gpt-oss-120b in bf16"),
                                               (8, 2, 4096, 7168, "half of mixtral-8x7b")):
        w1 = torch.randn(experts, 2 * inner, hidden, device="cuda", dtype=torch.bfloat16) * 0.02
        w2 = torch.randn(experts, hidden, inner, device="cuda", dtype=torch.bfloat16) * 0.02
        for tokens in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192):
            per = tokens * top / experts
            best = None
            bms = [b for b in (16, 32, 64, 128) if per / 4 <= b <= 4 * per or (b == 128 and per > 128)]
            bms = [16] if per <= 8 else bms
            shapes = ([(64, 128, 4, 3), (128, 64, 4, 4), (64, 64, 4, 4), (128, 128, 4, 3)] if per <= 32 else
                      [(128, 64, 8, 3), (256, 64, 8, 3), (128, 64, 4, 4)])
            x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
            y1 = torch.empty(tokens * top, 2 * inner, device="cuda", dtype=torch.bfloat16)
            h = torch.empty(tokens * top, inner, device="cuda", dtype=torch.bfloat16)
            y2 = torch.empty(tokens * top, hidden, device="cuda", dtype=torch.bfloat16)
            for bm in bms:
                routings = [route(tokens, experts, top, bm) for _ in range(3)]
                for bn, bk, warps, stages in shapes:
                    def both(r):
                        grouped(x, w1, y1, r, top, bm, bn, bk, warps, stages)
                        grouped(h, w2, y2, r, 1, bm, bn, bk, warps, stages)
                    try:
                        us = graph_us([lambda r=r: both(r) for r in routings], rounds=5, target_ms=4)
                    except Exception as e:  # a tile that does not fit the GPU
                        say("tile", bm, bn, bk, str(e)[:80])
                        continue
                    if best is None or us < best[0]:
                        touched = statistics.mean(r[5] for r in routings)
                        best = (us, touched, bm, bn, bk)
            us, touched, bm, bn, bk = best
            size = touched * 3 * hidden * inner * 2
            row(experts, top, hidden, inner, tokens, touched, us, int(size), size / us / 1e3,
                tokens * top * 6.0 * hidden * inner / us / 1e6, bm, bn, bk)
            if tokens == 64:  # correct?
                r = route(tokens, experts, top, 16)
                grouped(x, w1, y1, r, top, 16, 64, 64, 4, 3)
                i = 17
                ref = x[i // top].float() @ w1[r[0][i]].float().T
                err = ((y1[i].float() - ref).norm() / ref.norm()).item()
                assert err < 2e-2, err
        say("experts", label, "done")
        del w1, w2
        torch.cuda.empty_cache()


# --- plain products ---------------------------------------------------------------------------------------------------
def products_section():
    row = table("products", ["rows", "inputs", "outputs", "us", "gb_per_s", "tflops"])
    for n_in, n_out in ((5120, 5120), (5120, 25600), (12800, 5120), (4096, 4096), (8192, 8192), (16384, 8192)):
        several = max(2, int(3e8 / (n_in * n_out * 2)) + 1)  # More than L2 holds.
        ws = [torch.randn(n_out, n_in, device="cuda", dtype=torch.bfloat16) for _ in range(several)]
        for rows in (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192):
            x = torch.randn(rows, n_in, device="cuda", dtype=torch.bfloat16)
            y = torch.empty(rows, n_out, device="cuda", dtype=torch.bfloat16)
            us = graph_us([lambda w=w: torch.mm(x, w.T, out=y) for w in ws], rounds=5, target_ms=6)
            row(rows, n_in, n_out, us, n_in * n_out * 2 / us / 1e3, 2.0 * rows * n_in * n_out / us / 1e6)
        del ws
    big = torch.empty(2 << 30, device="cuda", dtype=torch.int8)
    other = torch.empty_like(big)
    us = graph_us([lambda: other.copy_(big)], rounds=5)
    row(0, 2 << 30, 0, us, 2 * (2 << 30) / us / 1e3, 0.0)
    say("products done; device copy", 2 * (2 << 30) / us / 1e3, "GB/s")


# --- copies beside compute --------------------------------------------------------------------------------------------
@triton.jit
def _gather(SRC, DST, ORDER, words, blocks, CHUNK: tl.constexpr):
    """Copies blocks of `words` 8-byte words by the multiprocessors; SRC or DST is pinned host memory."""
    pid = tl.program_id(0)
    i = tl.arange(0, CHUNK)
    for b in range(pid, blocks, tl.num_programs(0)):
        slot = tl.load(ORDER + b).to(tl.int64)
        for at in range(0, words, CHUNK):
            v = tl.load(SRC + slot * words + at + i)
            tl.store(DST + slot * words + at + i, v)


def beside_section():
    row = table("copies_beside_compute", ["compute", "copy", "method", "block_bytes", "alone_us", "beside_us",
                                          "slower_by", "copy_alone_gb_per_s", "copy_beside_gb_per_s"])
    block = 2 << 20
    blocks = 256
    host = [torch.randint(0, 127, (blocks * block,), dtype=torch.int8).pin_memory() for _ in range(2)]
    dev = [torch.empty(blocks * block, device="cuda", dtype=torch.int8) for _ in range(2)]
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    hv = [h.view(blocks, block) for h in host]
    dv = [d.view(blocks, block) for d in dev]

    weights = [torch.randn(25600, 5120, device="cuda", dtype=torch.bfloat16) for _ in range(4)]
    x16 = torch.randn(16, 5120, device="cuda", dtype=torch.bfloat16)
    y16 = torch.empty(16, 25600, device="cuda", dtype=torch.bfloat16)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    c = torch.empty(8192, 8192, device="cuda", dtype=torch.bfloat16)
    at = Decode(32, 4, 128, 600_000)
    case = at.case(32, 16384, 0)
    buf = at.buffers(32, 8)
    compute = {
        "product of 16 rows (weights stream)": lambda: [torch.mm(x16, w.T, out=y16) for w in weights],
        "product of 8192 rows": lambda: torch.mm(a, b, out=c),
        "decode attention of 32 x 16384 tokens": lambda: at.run(case, 8, True, buffers=buf),
    }

    def queue_copies(which, rounds, events):
        """Queues `rounds` x 512 MiB; `events` gets one event per round."""
        for side in which:
            with torch.cuda.stream(streams[side]):
                for _ in range(rounds):
                    for i in range(blocks):
                        if side == 0:
                            dv[0][i].copy_(hv[0][i], non_blocking=True)
                        else:
                            hv[1][i].copy_(dv[1][i], non_blocking=True)
                    e = torch.cuda.Event(True)
                    e.record()
                    events[side].append(e)

    def rate_alone(which):
        events = {0: [], 1: []}
        torch.cuda.synchronize()
        start = torch.cuda.Event(True)
        start.record(streams[which[0]])
        threads = [threading.Thread(target=queue_copies, args=([s], 3, events)) for s in which]
        [t.start() for t in threads]; [t.join() for t in threads]
        torch.cuda.synchronize()
        return {s: 3 * blocks * block / start.elapsed_time(events[s][-1]) / 1e6 for s in which}

    copies = {"h2d": [0], "d2h": [1], "both": [0, 1]}
    alone_rate = {n: rate_alone(w) for n, w in copies.items()}
    alone_rate = {n: rate_alone(w) for n, w in copies.items()}
    say("copies alone", alone_rate)
    cs = torch.cuda.Stream()
    for label, f in compute.items():
        with torch.cuda.stream(cs):
            for _ in range(3):
                f()
            torch.cuda.synchronize()
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, stream=cs):
                f()
            def timed(loops):
                s, e = torch.cuda.Event(True), torch.cuda.Event(True)
                s.record()
                for _ in range(loops):
                    g.replay()
                e.record()
                return s, e
            s, e = timed(20); torch.cuda.synchronize()
            loops = max(20, int(150 / (s.elapsed_time(e) / 20)))
        for copy, which in copies.items():
            alone, beside, rates = [], [], []
            for _ in range(3):
                with torch.cuda.stream(cs):
                    s, e = timed(loops); torch.cuda.synchronize()
                alone.append(s.elapsed_time(e) / loops * 1e3)
                events = {0: [], 1: []}
                # 12 GiB a side: about 240 ms. Queue compute from here while threads queue copies.
                threads = [threading.Thread(target=queue_copies, args=([k], 24, events)) for k in which]
                [t.start() for t in threads]
                time.sleep(0.02)
                with torch.cuda.stream(cs):
                    s, e = timed(loops)
                [t.join() for t in threads]
                torch.cuda.synchronize()
                beside.append(s.elapsed_time(e) / loops * 1e3)
                span = s.elapsed_time(e)
                moved = 0.0
                for k in which:
                    times = [s.elapsed_time(v) for v in events[k]]
                    inside = [t for t in times if 0 <= t <= span]
                    if len(inside) > 1:
                        moved += (len(inside) - 1) * blocks * block / (inside[-1] - inside[0]) / 1e6
                    if max(times) < span:
                        say("copies ended early:", label, copy, max(times), span)
                rates.append(moved)
            al, be = statistics.median(alone), statistics.median(beside)
            row(label, copy, "copy engine", block, al, be, be / al - 1, sum(alone_rate[copy].values()),
                statistics.median(rates))
        # by multiprocessors: one kernel of `grid` blocks that copies 512 MiB each time
        order = torch.randperm(blocks, device="cuda").int()
        for grid in (4, 16, 64):
            for copy in ("h2d", "d2h"):
                src = (host[0] if copy == "h2d" else dev[0]).view(torch.int64)
                dst = (dev[0] if copy == "h2d" else host[0]).view(torch.int64)
                def push(n):
                    ev = []
                    with torch.cuda.stream(streams[0]):
                        for _ in range(n):
                            _gather[(grid,)](src, dst, order, block // 8, blocks, CHUNK=2048, num_warps=8)
                            v = torch.cuda.Event(True); v.record(); ev.append(v)
                    return ev
                torch.cuda.synchronize()
                ev = push(4); torch.cuda.synchronize()
                alone_gb = 3 * blocks * block / ev[0].elapsed_time(ev[3]) / 1e6
                rounds = int(alone_gb * 0.25 / (blocks * block / 1e9)) + 2
                alone, beside, rates = [], [], []
                for _ in range(3):
                    with torch.cuda.stream(cs):
                        s, e = timed(loops); torch.cuda.synchronize()
                    alone.append(s.elapsed_time(e) / loops * 1e3)
                    ev = push(rounds)
                    with torch.cuda.stream(cs):
                        s, e = timed(loops)
                    torch.cuda.synchronize()
                    beside.append(s.elapsed_time(e) / loops * 1e3)
                    span = s.elapsed_time(e)
                    inside = [t for t in (s.elapsed_time(v) for v in ev) if 0 <= t <= span]
                    rates.append((len(inside) - 1) * blocks * block / (inside[-1] - inside[0]) / 1e6)
                al, be = statistics.median(alone), statistics.median(beside)
                row(label, copy, f"kernel of {grid} blocks", block, al, be, be / al - 1, alone_gb,
                    statistics.median(rates))
        say("beside", label, "done")


for name in (sys.argv[2] if len(sys.argv) > 2 else "beside,decode,groups,experts,products").split(","):
    globals()[name + "_section"]()
    torch.cuda.empty_cache()
