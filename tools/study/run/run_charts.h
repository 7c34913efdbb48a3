// The charts of one run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/render/document.h"
#include "tools/study/verdict/run_verdict.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {

std::string stage_label(const PageRun& run, const StageView& stage);

/// Whether some reported stage of the variant is overloaded and others are not.
bool pools_overload(const VariantView& variant);

/// A measure shown stage by stage.
struct Curve {
  std::string_view key;
  std::string_view answer;  ///< The title of its chart begins so.
};
std::span<const Curve> curves();

/// A chart and what it shows, `output_throughput`, `ttft.mean`, ...
struct NamedChart {
  std::string name;
  LineChart chart;
};
/// Throughput, latencies and goodput against the load, published points beside them; one line for
/// all variants that a scan of rates made of one. None for a run of one stage.
std::vector<NamedChart> load_curves(const PageRun& run);

/// Ends the title of what only the first of several runs has: ` (seed 1, one of 5)`.
std::string one_seed(const PageRun& run);

/// The picture of a run's answer: the rate that each variant sustains, by its knee; where none was
/// looked for, the first curve or the mean latencies.
std::optional<Chart> answer_chart(const PageRun& run, const std::vector<Knee>& knees);

/// Shares of requests (gaps) under a latency, over the reported stages.
std::vector<Chart> distribution_charts(const PageRun& run);
/// Requests per server, and each server over time where the result says it.
std::vector<Block> server_charts(const PageRun& run);

}  // namespace routesim::tools
