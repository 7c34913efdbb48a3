"""Measures what a decode step of vLLM costs beside the GPU's own work, with and without asynchronous scheduling.

Usage: host_steps.py FOLDER [MODEL,...]. Writes host_step.csv; the README of scenarios/measured/gpu_kernels explains it.
Needs vLLM (0.24.0), its dependencies and one GPU, and takes seven minutes, most of them vLLM's start; weights are
random, nothing is downloaded. FlashInfer's sampler is off, so FlashInfer may be missing. Each row is one engine of
`vllm.LLM` with its core in a process of its own, as `vllm serve` has it, CUDA graphs on, greedy sampling, no
detokenizing: a batch of equal requests decodes together. A step's wall time is from the end of one core step to the end
of the next; the GPU's time is from a CUDA event before the graph's replay to one after sampling, in a second run of the
same batch. Steps at the start and the end of a batch are left out.
"""
import csv
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

BATCHES = (1, 8, 32, 64, 128, 256)
TOKENS = 200
MODELS = {  # hidden, intermediate, layers, heads, tied embeddings
    "qwen3-0.6b": (1024, 3072, 28, 16, True),
    "qwen3-8b": (4096, 12288, 36, 32, False),
}
FIELDS = ["device", "engine", "model", "tp", "async_scheduling", "batch", "steps", "step_us", "step_p10_us",
          "step_p90_us", "gpu_us", "gpu_p10_us", "gpu_p90_us", "host_us", "schedule_us", "update_us"]
SLOTS = 60000


def config(name, folder):
    hidden, inner, layers, heads, tied = MODELS[name]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": False,
                   "head_dim": 128, "hidden_act": "silu", "hidden_size": hidden, "intermediate_size": inner,
                   "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": 8,
                   "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000,
                   "tie_word_embeddings": tied, "vocab_size": 151936, "dtype": "bfloat16", "bos_token_id": 151643,
                   "eos_token_id": 151645}, f)


class Probe:
    """Wraps the engine core of a forked process; its numbers come back through shared memory."""

    def __init__(self):
        self.phase = multiprocessing.RawValue("i", 0)
        self.steps = multiprocessing.RawValue("i", 0)
        self.gpus = multiprocessing.RawValue("i", 0)
        self.step_rows = multiprocessing.RawArray("d", SLOTS * 5)
        self.gpu_rows = multiprocessing.RawArray("d", SLOTS * 3)
        self.schedule = self.update = 0.0
        self.first, self.open = None, []

    def install(self):
        import torch
        from vllm.v1.core.sched.scheduler import Scheduler
        from vllm.v1.engine.core import EngineCoreProc
        from vllm.v1.worker.gpu.model_runner import GPUModelRunner as V2
        from vllm.v1.worker.gpu_model_runner import GPUModelRunner as V1
        probe = self

        def clocked(owner, name, into):
            inner = getattr(owner, name)
            def wrapper(*a, **k):
                start = time.perf_counter()
                result = inner(*a, **k)
                setattr(probe, into, time.perf_counter() - start)
                return result
            setattr(owner, name, wrapper)

        clocked(Scheduler, "schedule", "schedule")
        clocked(Scheduler, "update_from_output", "update")

        step = EngineCoreProc._process_engine_step
        def stepped(core):
            result = step(core)
            n = probe.steps.value
            if n < SLOTS:
                probe.step_rows[5 * n:5 * n + 5] = [time.perf_counter(), len(core.scheduler.running), probe.phase.value,
                                                    probe.schedule, probe.update]
                probe.steps.value = n + 1
            return result
        EngineCoreProc._process_engine_step = stepped

        replay = torch.cuda.CUDAGraph.replay
        def replayed(graph):
            if probe.phase.value % 10 == 3 and probe.first is None:
                probe.first = torch.cuda.Event(enable_timing=True)
                probe.first.record()
            return replay(graph)
        torch.cuda.CUDAGraph.replay = replayed

        for runner in (V1, V2):
            def sampled(me, *a, inner=runner.sample_tokens, **k):
                result = inner(me, *a, **k)
                if probe.first is not None:
                    last = torch.cuda.Event(enable_timing=True)
                    last.record()
                    probe.open.append((probe.first, last, probe.phase.value))
                    probe.first = None
                    while len(probe.open) > 4 and probe.open[0][1].query():
                        a, b, phase = probe.open.pop(0)
                        n = probe.gpus.value
                        probe.gpu_rows[3 * n:3 * n + 3] = [phase, a.elapsed_time(b), 0]
                        probe.gpus.value = n + 1
                return result
            runner.sample_tokens = sampled

    def step_us(self, phase, batch):
        """Wall, schedule and update microseconds of the steps of a full batch."""
        rows = [self.step_rows[5 * n:5 * n + 5] for n in range(self.steps.value)]
        full = [i for i in range(1, len(rows)) if rows[i][2] == phase and rows[i][1] == rows[i - 1][1] == batch]
        full = full[20:-20]
        return ([1e6 * (rows[i][0] - rows[i - 1][0]) for i in full], [1e6 * rows[i][3] for i in full],
                [1e6 * rows[i][4] for i in full])

    def gpu_us(self, phase):
        rows = [self.gpu_rows[3 * n:3 * n + 3] for n in range(self.gpus.value)]
        return [1e3 * r[1] for r in rows if r[0] == phase][40:-20]


def spread(values):
    values = sorted(values)
    return statistics.median(values), values[len(values) // 10], values[-1 - len(values) // 10]


def one(out, model, asynchronous):
    os.environ.update(VLLM_WORKER_MULTIPROC_METHOD="fork", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
                      VLLM_USE_FLASHINFER_SAMPLER="0", VLLM_USE_DEEP_GEMM="0")
    folder = os.path.join(tempfile.gettempdir(), model)
    config(model, folder)
    import vllm
    probe = Probe()
    probe.install()
    started = time.time()
    llm = vllm.LLM(model=folder, load_format="dummy", skip_tokenizer_init=True, max_model_len=2048,
                   max_num_seqs=max(BATCHES), gpu_memory_utilization=0.8, async_scheduling=asynchronous,
                   generation_config="vllm",
                   compilation_config={"cudagraph_capture_sizes": [1, 2, 4, *BATCHES[1:]]})
    print(f"engine up after {time.time() - started:.1f} s", flush=True)
    params = vllm.SamplingParams(temperature=0.0, max_tokens=TOKENS, ignore_eos=True, detokenize=False)
    for batch in BATCHES:
        for run in (1, 2, 3):  # Warm-up, wall times, GPU times.
            probe.phase.value = batch * 10 + run
            if run == 1:
                params.max_tokens = 20
            prompts = [{"prompt_token_ids": [random.randrange(1000, 100000) for _ in range(32)]} for _ in range(batch)]
            llm.generate(prompts, params, use_tqdm=False)
            params.max_tokens = TOKENS
    from vllm.platforms import current_platform
    name = current_platform.get_device_name()
    path = os.path.join(out, "host_step.csv")
    fresh = not os.path.exists(path)
    with open(path, "a", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        if fresh:
            w.writerow(FIELDS)
        for batch in BATCHES:
            wall, schedule, update = probe.step_us(batch * 10 + 2, batch)
            gpu = probe.gpu_us(batch * 10 + 3)
            if len(wall) < 20 or len(gpu) < 20:
                print("too few", model, asynchronous, batch, len(wall), len(gpu), flush=True)
                continue
            numbers = [*spread(wall), *spread(gpu), statistics.median(wall) - statistics.median(gpu),
                       statistics.median(schedule), statistics.median(update)]
            short = [f"{x:.4g}" if x < 1e4 else f"{float(f'{x:.4g}'):.0f}" for x in numbers]
            w.writerow([{"NVIDIA H100 80GB HBM3": "H100-SXM"}.get(name, name), f"vllm {vllm.__version__}", model, 1,
                        int(asynchronous), batch, len(wall), *short])
            print(model, "async" if asynchronous else "sync", batch, [round(x) for x in numbers], flush=True)


if __name__ == "__main__":
    out = sys.argv[1]
    if len(sys.argv) > 3:
        one(out, sys.argv[2], sys.argv[3] == "1")
        sys.exit()
    for model in (sys.argv[2] if len(sys.argv) > 2 else ",".join(MODELS)).split(","):
        for asynchronous in ("0", "1"):
            with open(os.path.join(out, f"host_{model}_{asynchronous}.log"), "w") as log:
                try:
                    code = subprocess.run([sys.executable, __file__, out, model, asynchronous], stdout=log,
                                          stderr=subprocess.STDOUT, timeout=200).returncode
                except subprocess.TimeoutExpired:
                    code = "too long"
            print(model, asynchronous, "ended with", code, flush=True)
            if code:
                sys.exit(1)
