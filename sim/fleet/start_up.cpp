#include "sim/fleet/start_up.h"

#include <algorithm>
#include <cmath>

namespace routesim::sim {

namespace {

// vLLM's phases are of arXiv 2606.07362, "Breaking the Ice", and its data (upb-cn/
// vllm-startup-profiler @9ef96f4: vLLM 0.10.1.1, 11 models of 24 to 48 layers, EPYC 9354, H100 NVL
// and L40S): all but the weights is work of one CPU core and grows with layers, not with bytes.

/// Imports, model inspection, engine process: 8.4 s, and 1.1 s outside the engine's own log.
constexpr double kProcessS = 9.5;
/// Dynamo's bytecode transform, each layer: 4.3 s at 24, 8.1 s at 48.
constexpr double kTraceLayerS = 0.17;
/// Inductor, each layer: 13.8 s at 24 layers, 25.6 s at 48; from its cache 3.6 s and 7.1 s.
constexpr double kCompileLayerS = 0.54, kCompiledLayerS = 0.145;
/// Memory profile, allocation of KV blocks, first kernels: 1.4 to 2.7 s.
constexpr double kProfileS = 2.0;
/// One CUDA graph, each layer: 67 graphs in 0.94 s at 24 layers, 1.5 s at 48.
constexpr double kGraphLayerS = 0.55e-3;

/// From the page cache to one GPU, 10^9 bytes/s: 13.5 GB in 1.63 s, 28.3 GB in 3.41 s.
constexpr double kCopyGbPerS = 8.3;
/// Share of the weights whose slices are columns: their rows lie scattered over the file, so every
/// rank reads all of it (the down and output projections of vLLM's row-parallel layers).
constexpr double kReadByAll = 0.35;

/// vLLM's safetensors loader faults pages in, one after the other, in each of its processes: 1.1
/// GB/s on one H200, 4.3 GB/s on eight (vLLM's documentation of 2026, extensions/instanttensor).
constexpr double kReaderGbPerS = 1.1, kNvmeGbPerS = 5;
/// EFS grants 500 MiB/s to a client (Amazon EFS quotas for NFS clients).
constexpr double kNetworkGbPerS = 0.5;
/// 65.5 GB from Hugging Face in 87 s; an image of 8.91 GB in 69 s; a snapshot of 70.6 GB from a
/// bucket in 8 s, 4.3 GB of it no weights, after 6 s for sandbox and mounts (llm-d @005cf57,
/// guides/gke-pod-snapshots/benchmark-results/vllm-qwen3-32b-h100.md).
constexpr double kDownloadGbPerS = 0.75, kImageGbPerS = 0.129;
constexpr double kSnapshotGbPerS = 8.8, kSnapshotExtraGb = 4.3, kSandboxS = 6;

Duration from_seconds(double s) { return Duration::nanoseconds(std::llround(s * 1e9)); }

double storage_rate(const StartUpConfig& config, double processes) {
  if (config.storage_gb_per_s) return *config.storage_gb_per_s;
  switch (config.storage) {
    case WeightStorage::kNvme:
      return std::min(kReaderGbPerS * processes, kNvmeGbPerS);
    case WeightStorage::kNetwork:
      return kNetworkGbPerS;
    case WeightStorage::kObjectStore:
    case WeightStorage::kMemory:
      break;
  }
  return kDownloadGbPerS;
}

/// Sets `load` and the part of it that is read from storage.
void add_load(StartUpTimes& t, const StartUpConfig& config, const StartingServer& server) {
  if (config.storage != WeightStorage::kMemory)
    t.cached = from_seconds(server.weight_bytes / 1e9 /
                            storage_rate(config, static_cast<double>(server.gpus)));
  const double read =
      server.gpu_weight_bytes * (1 + kReadByAll * static_cast<double>(server.slices - 1));
  t.load = t.cached + from_seconds(read / 1e9 / kCopyGbPerS);
}

void add_engine(StartUpTimes& t, const StartUpConfig& config, const StartingServer& server) {
  const double layers = static_cast<double>(server.layers);
  t.process = from_seconds(kProcessS);
  add_load(t, config, server);
  if (server.compiles)
    t.compile = from_seconds(
        layers * (kTraceLayerS + (config.compile_cache ? kCompiledLayerS : kCompileLayerS)));
  t.warm_up =
      from_seconds(kProfileS + static_cast<double>(server.cuda_graphs) * layers * kGraphLayerS);
}

/// The memory of the process is read, and the weights go back to the GPUs.
void add_restore(StartUpTimes& t, const StartingServer& server) {
  t.process = from_seconds(kSandboxS);
  t.load = from_seconds((server.weight_bytes / 1e9 + kSnapshotExtraGb) / kSnapshotGbPerS +
                        server.gpu_weight_bytes / 1e9 / server.host_link_gb_per_s);
}

/// Kubernetes' pkg/kubelet/prober/worker.go, doProbe: no probe before initialDelaySeconds from the
/// start of the container, one each period then, until successThreshold in a row have succeeded. A
/// startup probe that succeeds has the readiness probe run at once (prober_manager.go,
/// UpdatePodStatus). The periods' phase is random.
void add_probes(StartUpTimes& t, const StartUpConfig& config) {
  const Duration answers = t.process + t.load + t.compile + t.warm_up;
  const auto wait = [&](Duration from) {
    return std::max(config.probe_delay - from, Duration::zero());
  };
  t.probe = wait(answers) + config.probe_period / 2 + config.probe_repeats;
  t.waited = wait(answers - t.cached) - wait(answers);
}

void scale_to_total(StartUpTimes& t, Duration total) {
  const double whole = t.cold().to_seconds();
  if (whole <= 0) {
    t.load = total;
    return;
  }
  const double scale = total.to_seconds() / whole;
  for (Duration StartUpTimes::*phase :
       {&StartUpTimes::node, &StartUpTimes::image_pull, &StartUpTimes::process,
        &StartUpTimes::compile, &StartUpTimes::warm_up, &StartUpTimes::probe, &StartUpTimes::cached,
        &StartUpTimes::waited})
    t.*phase = from_seconds((t.*phase).to_seconds() * scale);
  t.load = total - t.node - t.image_pull - t.process - t.compile - t.warm_up - t.probe;
}

}  // namespace

StartUpTimes start_up_times(const StartUpConfig& config, const StartingServer& server) {
  StartUpTimes t;
  if (config.snapshot)
    add_restore(t, server);
  else
    add_engine(t, config, server);
  t.node = config.node.value_or(Duration::zero());
  t.image_pull =
      config.image_pull.value_or(from_seconds(config.image_gb.value_or(0) / kImageGbPerS));
  t.process = config.process.value_or(t.process);
  if (config.load) {
    t.load = *config.load;
    t.cached = Duration::zero();
  }
  t.compile = config.compile.value_or(t.compile);
  t.warm_up = config.warm_up.value_or(t.warm_up);
  add_probes(t, config);
  // A measured whole keeps the shares of the phases.
  if (config.total) scale_to_total(t, *config.total);
  return t;
}

}  // namespace routesim::sim
