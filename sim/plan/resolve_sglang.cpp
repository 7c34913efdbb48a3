#include "sim/plan/resolve_sglang.h"

namespace routesim::sim {

std::optional<PoolFault> sglang_fault(const PoolConfig& c, const models::ModelSpec& model) {
  const std::string_view foreign = foreign_key(c.engine);
  if (!foreign.empty())
    return PoolFault{"engine." + std::string(foreign),
                     "means nothing to engine.kind " + std::string(enum_name(c.engine.kind)),
                     c.engine.kind == EngineKind::kVllm
                         ? "set engine.kind: sglang, or leave it out"
                         : "leave it out; SGLang's own keys stand in engine.sglang"};
  if (c.engine.kind == EngineKind::kVllm) return std::nullopt;
  const std::string by_hand = "take engine.kind vllm, or leave it out";
  if (c.role != PoolRole::kBoth)
    return PoolFault{"role", "must be both: SGLang's disaggregation is not simulated", by_hand};
  if (c.data_parallel > 1)
    return PoolFault{"data_parallel", "must be 1: SGLang's data parallelism is not simulated",
                     "without --enable-dp-attention the ranks are replicas of their own"};
  if (c.pipeline_parallel > 1)
    return PoolFault{"pipeline_parallel", "must be 1: SGLang's pipeline is not simulated", by_hand};
  if (model.state.layers > 0 || !model.compressed.empty())
    return PoolFault{"model", "has layers that are simulated for vLLM only", by_hand};
  const SglangConfig own = c.engine.sglang.value_or(SglangConfig{});
  if (own.chunked_prefill_size.value_or(0) % own.page_size != 0)
    return PoolFault{
        "engine.sglang.chunked_prefill_size",
        "must be a multiple of page_size (got " + std::to_string(*own.chunked_prefill_size) + ")",
        "page_size is " + std::to_string(own.page_size)};
  return std::nullopt;
}

SglangDevice sglang_device(const PoolConfig& c, const models::AcceleratorSpec& gpu) {
  return {.memory_bytes = gpu.memory_bytes, .tp = c.tensor_parallel, .pp = c.pipeline_parallel};
}

}  // namespace routesim::sim
