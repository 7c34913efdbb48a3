"""Measures what a step of vLLM costs that holds a part of a prompt beside decodes: its attention and its products.

Usage: mixed.py FOLDER [fa3,fa2,products]. Writes mixed_attention.csv and mixed_products.csv; the README of
scenarios/measured/gpu_kernels explains them. Needs PyTorch with CUDA (2.11) and takes two minutes. Sections fa3 and
fa2 want FA3=PATH and FA2=PATH, the _vllm_fa3_C.abi3.so and _vllm_fa2_C.abi3.so of a vLLM wheel (0.24.0). The calls are
those of vLLM's FlashAttention backend (v1/attention/backends/flash_attn.py), and outputs are first checked against
plain products. Before each timed call a read of 256 MiB drives the KV out of the L2, and the queries are written once
more, as the layer's rotary embedding would. A time is from a CUDA event to a CUDA event, queued behind a sleeping
kernel so that Python's launches do not count; the CSV has the median and the 10th and 90th percentile.
"""
import csv
import os
import statistics
import sys
import time

import torch

OUT = sys.argv[1]
NAME = torch.cuda.get_device_name()
DEVICE = {"NVIDIA H100 80GB HBM3": "H100-SXM"}.get(NAME, NAME)
START = time.time()
torch.manual_seed(1)
REPEATS = 30
MAX_MODEL_LEN = 40960  # Width of the block table, in tokens.


def say(*a):
    print(f"[{time.time() - START:6.1f}s]", *a, flush=True)


def short(x):
    """Four digits, and no exponent."""
    return f"{x:.4g}" if x < 1e4 else f"{float(f'{x:.4g}'):.0f}"


def table(name, fields):
    path = os.path.join(OUT, name + ".csv")
    fresh = not os.path.exists(path)
    f = open(path, "a", newline="")
    w = csv.writer(f, lineterminator="\n")
    if fresh:
        w.writerow(["device"] + fields)
    def row(*v):
        w.writerow([DEVICE] + [short(x) if isinstance(x, float) else x for x in v])
        f.flush()
    return row


COLD = torch.ones(64 << 20, device="cuda", dtype=torch.float32)
COLD_SUM = torch.empty((), device="cuda", dtype=torch.float32)
SLEEP = [6_000_000]  # Cycles; grows until the queue is full before the GPU wakes.


def timed(call, touch=None, repeats=REPEATS):
    """(median, 10th, 90th percentile) microseconds of `call`."""
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    for _ in range(5):
        pairs = [(torch.cuda.Event(True), torch.cuda.Event(True)) for _ in range(repeats)]
        awake = torch.cuda.Event()
        torch.cuda._sleep(SLEEP[0])
        awake.record()
        for a, b in pairs:
            torch.sum(COLD, 0, out=COLD_SUM)
            if touch is not None:
                touch.mul_(1.0)
            a.record()
            call()
            b.record()
        late = awake.query()
        torch.cuda.synchronize()
        if not late:
            break
        SLEEP[0] = SLEEP[0] * 3 // 2
    us = sorted(a.elapsed_time(b) * 1e3 for a, b in pairs)
    return statistics.median(us), us[repeats // 10], us[-1 - repeats // 10]


# --- attention --------------------------------------------------------------------------------------------------------
class Attention:
    """One layer of vLLM's FlashAttention backend over a paged cache in bf16, 16 tokens a block."""
    PAGE, DIM = 16, 128

    def __init__(self, version, heads, kv_heads, tokens):
        self.version, self.h, self.hkv = version, heads, kv_heads
        self.pages = tokens // self.PAGE
        cache = torch.empty(self.pages, 2, self.PAGE, kv_heads, self.DIM, device="cuda", dtype=torch.bfloat16)
        for part in cache.split(4096):
            part.normal_()
        self.k, self.v = cache.unbind(1)
        self.order = torch.randperm(self.pages, device="cuda").int()

    def case(self, queries, contexts, beside=0):
        """A call: new tokens and all tokens (new ones too) of each sequence. With `beside`, the call is scheduled as
        if a prompt of so many new tokens were in it."""
        batch = len(queries)
        t = torch.zeros(batch, MAX_MODEL_LEN // self.PAGE, device="cuda", dtype=torch.int32)
        at = 0
        for i, c in enumerate(contexts):
            n = (c + self.PAGE - 1) // self.PAGE
            t[i, :n] = self.order[at:at + n]
            at += n
        start = torch.tensor([0] + queries, device="cuda").cumsum(0).int()
        lengths = torch.tensor(contexts, device="cuda", dtype=torch.int32)
        tokens = sum(queries)
        q = torch.randn(tokens, self.h, self.DIM, device="cuda", dtype=torch.bfloat16)
        out = torch.full_like(q, float("nan"))
        longest_query = max(beside, *queries)
        longest = max(contexts)
        # flash_attn_max_num_splits_for_cuda_graph up to max_cudagraph_capture_size tokens, else FA3's own heuristic.
        splits = 32 if tokens + beside <= 512 else 0
        scale = self.DIM ** -0.5
        if self.version == 3:
            ops = torch.ops._vllm_fa3_C
            plan = ops.get_scheduler_metadata(
                batch, longest_query, longest, self.h, self.hkv, self.DIM, self.DIM, torch.bfloat16, lengths, start,
                None, None, None, None, self.PAGE, 0, True, -1, -1, False, splits, None, 0)
            one = torch.ones((), device="cuda").expand(batch, self.hkv)
            def call():
                ops.fwd(q, self.k, self.v, None, None, None, out, start, None, None, None, lengths, longest_query,
                        longest, t, None, None, None, None, None, one, one, one, scale, True, -1, -1, 0.0, True, plan,
                        splits, None, 0, None, 1, 0, None)
        else:
            ops = torch.ops._vllm_fa2_C
            none = torch.empty_like(start)
            def call():
                ops.varlen_fwd(q, self.k, self.v, out, start, none, lengths, None, t, None, longest_query, longest, 0.0,
                               scale, False, True, -1, -1, 0.0, False, 0, None)
        return call, q, out, t, start

    def check(self):
        """The worst error of a mixed call, a prompt and decodes, run twice, against plain products."""
        worst = 0.0
        for queries, contexts in (([1, 1, 1, 100], [999, 1, 333, 612]), ([100], [612]), ([1, 1, 1], [999, 17, 333]),
                                  ([1] * 40 + [600], [2000] * 40 + [700])):
            call, q, out, t, start = self.case(queries, contexts)
            call()
            out.fill_(float("nan"))
            call()
            for i in {0, 1 % len(queries), len(queries) - 1}:
                n = torch.arange(contexts[i], device="cuda")
                page, slot = t[i, n // self.PAGE].long(), n % self.PAGE
                k = self.k[page, slot].double().repeat_interleave(self.h // self.hkv, 1)
                v = self.v[page, slot].double().repeat_interleave(self.h // self.hkv, 1)
                a, b = int(start[i]), int(start[i + 1])
                s = torch.einsum("qhd,nhd->hqn", q[a:b].double(), k) * self.DIM ** -0.5
                ahead = n[None, :] > (contexts[i] - queries[i] + torch.arange(queries[i], device="cuda"))[:, None]
                s.masked_fill_(ahead[None], float("-inf"))
                ref = torch.einsum("hqn,nhd->qhd", s.softmax(-1), v)
                err = ((out[a:b].double() - ref).norm() / ref.norm()).item()
                assert err < 1e-2, (self.version, queries[i], contexts[i], err)
                worst = max(worst, err)
            assert not out.isnan().any()
        return worst

    def us(self, queries, contexts, beside=0):
        call, q, *_ = self.case(queries, contexts, beside)
        return timed(call, q)


def attention(version):
    three = lambda name: [f"{name}_us", f"{name}_p10_us", f"{name}_p90_us"]
    row = table("mixed_attention", ["kernel", "heads", "kv_heads", "head_dim", "prompt_tokens", "cached_tokens",
                                    "decodes", "decode_context", *three("mixed"), *three("prompt"), *three("decodes"),
                                    "decodes_in_that_call_us"])
    torch.ops.load_library(os.environ[f"FA{version}"])
    kernel = f"FlashAttention {version}"
    for heads, kv in ((64, 8), (32, 4)):
        a = Attention(version, heads, kv, 1_100_000)
        say(kernel, heads, kv, "error", a.check())
        decodes, as_prompts = {}, {}
        for count in (8, 32, 64, 128):
            for context in (1024, 8192):
                decodes[count, context] = a.us([1] * count, [context] * count)
                for new in (16, 128, 512, 2048):
                    as_prompts[count, context, new] = a.us([1] * count, [context] * count, new)[0]
        for new in (16, 128, 512, 2048):
            for cached in (0, 4096, 16384):
                alone = a.us([new], [cached + new])
                for (count, context), beside in decodes.items():
                    # vLLM keeps requests in order of arrival: the prompt that is still read comes last.
                    mixed = a.us([1] * count + [new], [context] * count + [cached + new])
                    row(kernel, heads, kv, a.DIM, new, cached, count, context, *mixed, *alone, *beside,
                        as_prompts[count, context, new])
        say(kernel, heads, kv, "done, sleep", SLEEP[0])
        del a
        torch.cuda.empty_cache()


def fa3_section():
    attention(3)


def fa2_section():
    attention(2)


# --- products ---------------------------------------------------------------------------------------------------------
def products_section():
    row = table("mixed_products", ["format", "tp", "rows", "us", "p10_us", "p90_us", "qkv_us", "out_us", "gate_up_us",
                                   "down_us", "weight_bytes", "tflops"])
    rows = sorted({c + d for c in (0, 16, 128, 512, 2048) for d in (0, 8, 32, 64, 128) if c + d} | {1, 256, 1024, 4096})
    for tp in (1, 2):
        shapes = [(5120, 10240 // tp), (8192 // tp, 5120), (5120, 51200 // tp), (25600 // tp, 5120)]
        for fmt in ("bf16", "fp8"):
            size = 2 if fmt == "bf16" else 1
            ws, one = [], torch.ones((), device="cuda")
            for n_in, n_out in shapes:
                w = torch.randn(n_out, n_in, device="cuda", dtype=torch.bfloat16)
                ws.append(w if fmt == "bf16" else w.to(torch.float8_e4m3fn))
            for m in rows:
                xs = [torch.randn(m, n_in, device="cuda", dtype=torch.bfloat16) for n_in, _ in shapes]
                if fmt == "bf16":
                    ys = [torch.empty(m, n_out, device="cuda", dtype=torch.bfloat16) for _, n_out in shapes]
                    calls = [lambda x=x, w=w, y=y: torch.mm(x, w.T, out=y) for x, w, y in zip(xs, ws, ys)]
                else:
                    xs = [x.to(torch.float8_e4m3fn) for x in xs]
                    calls = [lambda x=x, w=w: torch._scaled_mm(x, w.T, one, one, out_dtype=torch.bfloat16,
                                                              use_fast_accum=True) for x, w in zip(xs, ws)]
                if m == 64:
                    got = calls[1]()
                    ref = xs[1].double() @ ws[1].double().T
                    err = ((got.double() - ref).norm() / ref.norm()).item()
                    assert err < 1e-2, err
                try:
                    whole = timed(lambda: [c() for c in calls])
                except RuntimeError as e:
                    say("no product", fmt, m, str(e)[:100])
                    continue
                each = [timed(c, repeats=20)[0] for c in calls]
                weights = sum(a * b for a, b in shapes)
                row(fmt, tp, m, *whole, *each, weights * size, 2.0 * m * weights / whole[0] / 1e6)
            say("products", fmt, "tp", tp, "done, sleep", SLEEP[0])
            del ws
            torch.cuda.empty_cache()


if __name__ == "__main__":
    small = torch.zeros(1, device="cuda")
    say(NAME, torch.__version__, "nothing", timed(lambda: None), "a small kernel", timed(lambda: small.add_(1)))
    for name in (sys.argv[2] if len(sys.argv) > 2 else "fa3,fa2,products").split(","):
        globals()[name + "_section"]()
        torch.cuda.empty_cache()
