#include "models/lora.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/ticks.h"

namespace routesim::models {

namespace {

constexpr double kBytes = 2;         // bf16
constexpr double kHostLink = 25e9;   // bytes/s: PCIe 4.0 x16, pinned memory
constexpr double kDisk = 2e9;        // bytes/s: a local NVMe disk, or what the page cache still has
constexpr double kCopy_ns = 10'000;  // one tensor's copy to the GPU
constexpr double kTensor_ns = 50'000;    // one tensor read and pinned
constexpr double kTensorsPerLayer = 14;  // two factors of seven projections
constexpr double kKernel_ns = 5'000;     // a small Triton kernel inside a CUDA graph
constexpr double kKernelsPerLayer = 8;   // shrink and expand of four merged projections

/// A merged projection with its widths on one GPU; the side that tensor parallelism splits is
/// divided. Each of its parts has a factor of its own on the side of the input.
struct Projection {
  double in = 0, out = 0;
  double parts = 1;
  double layers = 0;
};

std::array<Projection, 6> projections(const ModelSpec& m, const Parallelism& p) {
  const auto tp = static_cast<double>(p.tp);
  const auto hidden = static_cast<double>(m.hidden), layers = static_cast<double>(m.layers);
  const auto heads = static_cast<double>(m.heads);
  const double query = heads * static_cast<double>(m.head_dim + (m.is_mla() ? m.rope_dim : 0));
  const double latent = static_cast<double>(m.kv_lora_rank + m.rope_dim);
  const double key_value =
      m.is_mla() ? latent : 2 * static_cast<double>(m.kv_heads * m.head_dim) / tp;
  const double attended = heads * static_cast<double>(m.is_mla() ? m.v_head_dim : m.head_dim);
  const auto mlp_layers = static_cast<double>(m.is_moe() ? m.dense_layers : m.layers);
  const double shared = static_cast<double>(m.shared_experts * m.expert_ffn);
  const double shared_layers = shared > 0 ? static_cast<double>(m.moe_layers()) : 0;
  const auto ffn = static_cast<double>(m.ffn);
  const double merged = m.is_mla() ? 2 : 3;
  return {{{.in = hidden, .out = query / tp + key_value, .parts = merged, .layers = layers},
           {.in = attended / tp, .out = hidden, .layers = layers},
           {.in = hidden, .out = 2 * ffn / tp, .parts = 2, .layers = mlp_layers},
           {.in = ffn / tp, .out = hidden, .layers = mlp_layers},
           {.in = hidden, .out = 2 * shared / tp, .parts = 2, .layers = shared_layers},
           {.in = shared / tp, .out = hidden, .layers = shared_layers}}};
}

}  // namespace

double lora_bytes_per_gpu(const ModelSpec& m, const Parallelism& p, std::int64_t rank) {
  double rows = 0;
  for (const Projection& one : projections(m, p))
    rows += one.layers * (one.parts * one.in + one.out);
  return kBytes * static_cast<double>(rank) * rows / static_cast<double>(p.pp);
}

double lora_expert_slot_bytes(const ModelSpec& m, const Parallelism& p, std::int64_t rank) {
  if (!m.is_moe()) return 0;
  const double split = p.ep > 1 ? 1 : static_cast<double>(p.tp);
  const auto hidden = static_cast<double>(m.hidden);
  const double ffn = static_cast<double>(m.expert_ffn) / split;
  const double experts = static_cast<double>(m.experts) / static_cast<double>(p.ep);
  // Gate and up from hidden to ffn, down from ffn to hidden.
  const double rows = 3 * (hidden + ffn);
  return kBytes * static_cast<double>(rank * m.moe_layers()) / static_cast<double>(p.pp) * experts *
         rows;
}

LoraCosts lora_costs(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
                     std::int64_t rank) {
  // Shrink reads the input, expand reads and writes the output.
  double moved = 0;
  for (const Projection& one : projections(m, p))
    moved += one.layers * kBytes * (one.in + 2 * one.out);
  const auto layers = static_cast<double>(m.layers);
  const double bytes = lora_bytes_per_gpu(m, p, rank);
  return {.step = layers * kKernelsPerLayer * kKernel_ns,
          .token = moved / (a.memory_tb_per_s * a.weight_mbu * 1e3),
          .load = bytes / kHostLink * 1e9 + layers * kTensorsPerLayer * kCopy_ns,
          .read = bytes / kDisk * 1e9 + layers * kTensorsPerLayer * kTensor_ns};
}

LoraLatency::LoraLatency(std::shared_ptr<const LatencyModel> base, const LoraCosts& costs)
    : base_(std::move(base)) {
  const auto ticks = [](double ns) {
    return static_cast<std::int64_t>(std::llround(std::min(
        ns * static_cast<double>(kTicksPerNanosecond), static_cast<double>(kLongestStepTicks))));
  };
  step_ = ticks(costs.step);
  token_ = ticks(costs.token);
  load_ = ticks(costs.load);
  read_ = ticks(costs.read);
}

std::int64_t LoraLatency::extra_ticks(const BatchShape& shape) const {
  if (shape.adapter_tokens == 0) return 0;
  return bounded_ticks(step_ + static_cast<WideTicks>(token_) * shape.adapter_tokens +
                       static_cast<WideTicks>(load_) * shape.adapter_loads +
                       static_cast<WideTicks>(read_) * shape.adapter_reads);
}

std::int64_t LoraLatency::step_ticks(const BatchShape& shape) const {
  return bounded_ticks(base_->step_ticks(shape) + extra_ticks(shape));
}

DecodeRun LoraLatency::decode_run(const BatchShape& shape) const {
  DecodeRun run = base_->decode_run(shape);
  run.first = bounded_ticks(run.first + extra_ticks(shape));
  return bounded_run(run);
}

}  // namespace routesim::models
