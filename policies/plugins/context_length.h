// context-length-aware: endpoints are labelled with the prompt lengths they serve best.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/contextlengthaware.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "policies/build_context.h"

namespace routesim::policies {

struct ContextLengthParameters {
  std::optional<std::string> label;
  bool enable_filtering = false;
};
inline void describe(Describer& d, ContextLengthParameters& p) {
  field(d, {"label", "Label with the range 'min-max' (default by distribution)."}, p.label);
  field(d, {"enableFiltering", "Also drop endpoints whose range does not fit."},
        p.enable_filtering);
}

struct ContextRange {
  std::int64_t min = 0, max = 0;
};
/// "min-max", spaces allowed, min <= max; nothing when malformed.
std::optional<ContextRange> parse_context_range(std::string_view label);
/// Several ranges separated by commas; nothing when any is malformed.
std::optional<std::vector<ContextRange>> parse_context_ranges(std::string_view label);
/// In range: narrower ranges and more room score higher; outside: falls with the distance.
double context_range_score(const ContextRange& range, std::int64_t tokens);

/// A scorer, and with enableFiltering a filter too. Heimdall allows several ranges in one label;
/// its rule for combining them is not public, so the best range counts (an assumption).
class ContextLengthAware final : public Filter, public Scorer {
 public:
  ContextLengthAware(const ContextLengthParameters& p, const PluginSpec& spec,
                     BuildContext& context);
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override;

 private:
  std::optional<std::vector<ContextRange>> parse(std::string_view label) const;

  std::string label_;
  bool filtering_, several_ranges_;
};

}  // namespace routesim::policies
