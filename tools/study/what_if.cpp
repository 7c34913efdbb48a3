#include "tools/study/what_if.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

namespace routesim::sim {

namespace {

using models::BatchShape;

/// Which part of a step is halved.
enum class Part { kWhole, kPrefill, kDecode };

BatchShape without_prefill(BatchShape shape) {
  const std::int64_t tokens = shape.prefill_tokens;
  shape.prefill_requests = shape.prefill_tokens = 0;
  shape.prefill_context = shape.prefill_pairs = 0;
  shape.group_tokens = std::max<std::int64_t>(0, shape.group_tokens - tokens);
  shape.group_total_tokens = std::max<std::int64_t>(0, shape.group_total_tokens - tokens);
  return shape;
}

BatchShape without_decode(BatchShape shape) {
  const std::int64_t tokens = shape.decode_requests;
  shape.decode_requests = shape.decode_context = shape.shared_context = 0;
  shape.group_tokens = std::max<std::int64_t>(0, shape.group_tokens - tokens);
  shape.group_total_tokens = std::max<std::int64_t>(0, shape.group_total_tokens - tokens);
  return shape;
}

/// Another model with one kind of work at twice the speed. Steps are asked for one by one
/// (decode_run's default): half of an affine run of whole ticks is not affine.
class Faster final : public models::LatencyModel {
 public:
  Faster(std::shared_ptr<const models::LatencyModel> base, Part part)
      : base_(std::move(base)), part_(part) {}

  std::int64_t step_ticks(const BatchShape& shape) const override {
    const std::int64_t all = base_->step_ticks(shape);
    std::int64_t rest = 0;  // Ticks of the step without the faster work.
    if (part_ == Part::kPrefill) {
      if (shape.prefill_tokens == 0) return all;
      if (shape.decode_requests > 0) rest = base_->step_ticks(without_prefill(shape));
    } else if (part_ == Part::kDecode) {
      if (shape.decode_requests == 0) return all;
      if (shape.prefill_tokens > 0) rest = base_->step_ticks(without_decode(shape));
    }
    return std::max<std::int64_t>(1, all - std::max<std::int64_t>(0, all - rest) / 2);
  }
  std::int64_t last_stage_ticks(const BatchShape& shape) const override {
    return base_->last_stage_ticks(shape);
  }
  models::Trust trust(const BatchShape& shape) const override { return base_->trust(shape); }
  std::string provenance() const override { return base_->provenance() + ", one part faster"; }

 private:
  std::shared_ptr<const models::LatencyModel> base_;
  Part part_;
};

/// Another model with all steps longer or shorter. Steps are asked for one by one: a rounded
/// multiple of an affine run is not affine.
class Scaled final : public models::LatencyModel {
 public:
  Scaled(std::shared_ptr<const models::LatencyModel> base, double factor)
      : base_(std::move(base)), factor_(factor) {}

  std::int64_t step_ticks(const BatchShape& shape) const override {
    const std::int64_t ticks = base_->step_ticks(shape);
    if (ticks == 0) return 0;  // The batch is empty.
    return std::clamp<std::int64_t>(std::llround(factor_ * static_cast<double>(ticks)), 1,
                                    models::kLongestStepTicks);
  }
  std::int64_t last_stage_ticks(const BatchShape& shape) const override {
    return base_->last_stage_ticks(shape);
  }
  models::Trust trust(const BatchShape& shape) const override { return base_->trust(shape); }
  std::string provenance() const override { return base_->provenance() + ", steps scaled"; }

 private:
  std::shared_ptr<const models::LatencyModel> base_;
  double factor_;
};

void speed_up(RunPlan& plan, PoolRole only, Part part) {
  for (ResolvedPool& pool : plan.pools) {
    if (pool.config.role != only && pool.config.role != PoolRole::kBoth) continue;
    const bool only_this_work = pool.config.role == only;
    pool.latency =
        std::make_shared<const Faster>(pool.latency, only_this_work ? Part::kWhole : part);
  }
}

}  // namespace

std::string_view resource_name(Resource r) {
  switch (r) {
    case Resource::kKvBlocks:
      return "KV blocks";
    case Resource::kPrefillCompute:
      return "prefill compute";
    case Resource::kDecodeBandwidth:
      return "decode bandwidth";
    case Resource::kTransfer:
      return "transfer";
    case Resource::kRouter:
      break;
  }
  return "router";
}

bool has_resource(const RunPlan& plan, Resource r) {
  const RoutingConfig& routing = plan.scenario.routing;
  if (r == Resource::kRouter)
    return routing.service_time.value_or(Duration::zero()) > Duration::zero() ||
           routing.service_time_per_megabyte.value_or(Duration::zero()) > Duration::zero();
  return r != Resource::kTransfer || plan.has_prefill();
}

RunPlan with_doubled(const RunPlan& plan, Resource r) {
  RunPlan changed = plan;
  switch (r) {
    case Resource::kKvBlocks:
      for (ResolvedPool& pool : changed.pools) pool.rules.num_gpu_blocks *= 2;
      break;
    case Resource::kPrefillCompute:
      speed_up(changed, PoolRole::kPrefill, Part::kPrefill);
      break;
    case Resource::kDecodeBandwidth:
      speed_up(changed, PoolRole::kDecode, Part::kDecode);
      break;
    case Resource::kTransfer:
      changed.scenario.cluster.transfer.bandwidth_gbps *= 2;
      break;
    case Resource::kRouter:
      for (std::optional<Duration> RoutingConfig::*time :
           {&RoutingConfig::service_time, &RoutingConfig::service_time_per_megabyte})
        if (std::optional<Duration>& t = changed.scenario.routing.*time) t = *t / 2;
      break;
  }
  return changed;
}

RunPlan with_kv_blocks(const RunPlan& plan, double factor) {
  RunPlan changed = plan;
  for (ResolvedPool& pool : changed.pools)
    pool.rules.num_gpu_blocks = std::max<std::int64_t>(
        2, std::llround(factor * static_cast<double>(pool.rules.num_gpu_blocks)));
  return changed;
}

RunPlan with_step_times(const RunPlan& plan, double factor) {
  RunPlan changed = plan;
  for (ResolvedPool& pool : changed.pools)
    pool.latency = std::make_shared<Scaled>(pool.latency, factor);
  return changed;
}

}  // namespace routesim::sim

namespace routesim::tools {

namespace {

bool is_reported(const sim::StageResult& stage) {
  return stage.info.reported && !stage.info.is_preparation;
}

StageSide stage_side(const sim::StageResult& stage) {
  return {.ttft_mean_s = stage.time_to_first_token.mean(), .overloaded = stage.overloaded()};
}

}  // namespace

bool is_near_knee(const sim::RunResult& result) {
  return std::ranges::any_of(result.stages, [](const sim::StageResult& stage) {
    return is_reported(stage) &&
           (stage.overloaded() || stage.kv_cache_usage_max >= 1 - kCapacityBand);
  });
}

std::vector<StageSide> sides_of(const sim::RunResult& result) {
  std::vector<StageSide> sides;
  for (const sim::StageResult& stage : result.stages) sides.push_back(stage_side(stage));
  return sides;
}

std::vector<StageBand> capacity_band(const sim::RunResult& as_is, std::span<const StageSide> fewer,
                                     std::span<const StageSide> more) {
  std::vector<StageBand> band;
  if (fewer.size() != as_is.stages.size() || more.size() != as_is.stages.size()) return band;
  for (std::size_t s = 0; s < as_is.stages.size(); ++s)
    if (is_reported(as_is.stages[s]))
      band.push_back({.stage = as_is.stages[s].info.name,
                      .as_is = stage_side(as_is.stages[s]),
                      .fewer = fewer[s],
                      .more = more[s]});
  return band;
}

}  // namespace routesim::tools
