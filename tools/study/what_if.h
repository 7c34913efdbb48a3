// The same plan with one of its resources doubled, or with other step times: what a miss would look
// like if that resource did not bind, and whether an answer survives an error of the model.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "tools/results/report.h"

namespace routesim::sim {

/// A resource that a plan can run short of.
enum class Resource {
  kKvBlocks,         ///< Room for KV cache, running and reusable.
  kPrefillCompute,   ///< Prompt tokens per second.
  kDecodeBandwidth,  ///< Steps per second of those who decode.
  kTransfer,         ///< The links between prefill and decode servers.
  kRouter            ///< Decisions per second.
};

inline constexpr std::array<Resource, 5> kResources = {
    Resource::kKvBlocks, Resource::kPrefillCompute, Resource::kDecodeBandwidth, Resource::kTransfer,
    Resource::kRouter};

/// `KV blocks`, `prefill compute`, `decode bandwidth`, `transfer`, `router`.
std::string_view resource_name(Resource r);

/// Whether the plan uses the resource at all: transfer needs prefill servers, and a router one
/// whose decisions take time.
bool has_resource(const RunPlan& plan, Resource r);

/// The plan with twice the resource: twice the KV blocks; in every step the part of the time that
/// is due to prompt tokens, or to decoding sequences, halved (on servers that do only one of the
/// two, the whole step); twice the bandwidth; decisions in half the time. The part due to one kind
/// of work is what the latency model says of the step with it, less what it says of the step
/// without it.
RunPlan with_doubled(const RunPlan& plan, Resource r);

/// The plan with `factor` times the KV blocks of every pool, at least two of them.
RunPlan with_kv_blocks(const RunPlan& plan, double factor);

/// The plan with every step of every pool `factor` times as long, factor > 0.
RunPlan with_step_times(const RunPlan& plan, double factor);

}  // namespace routesim::sim

namespace routesim::tools {

/// Whether a few per cent of the KV blocks can decide: a reported stage is overloaded, or some
/// server had all but kCapacityBand of its blocks in use.
bool is_near_knee(const sim::RunResult& result);

/// The stages of a run, reported or not.
std::vector<StageSide> sides_of(const sim::RunResult& result);

/// The band of `as_is` from its plan's stages with fewer and more KV blocks. Empty when those are
/// not the same stages, which a load that finds its own rates can cause.
std::vector<StageBand> capacity_band(const sim::RunResult& as_is, std::span<const StageSide> fewer,
                                     std::span<const StageSide> more);

}  // namespace routesim::tools
