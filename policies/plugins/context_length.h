// context-length-aware: endpoints are labelled with the prompt lengths they serve best.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/contextlengthaware.
#pragma once

#include <charconv>

#include "base/text.h"
#include "policies/build_context.h"
#include "policies/plugins/p2p_source.h"

namespace routesim::policies {

struct ContextLengthParameters {
  std::optional<std::string> label;
  bool enable_filtering = false;
  std::string reusable_tokens_producer;
};
inline void describe(Describer& d, ContextLengthParameters& p) {
  field(d, {"label", "Label with the range 'min-max' (default by distribution)."}, p.label);
  field(d, {"enableFiltering", "Also drop endpoints whose range does not fit."},
        p.enable_filtering);
  field(d,
        {"reusableTokensProducerName",
         "p2p-source-producer whose pulls shorten the prompt (2026-09 and later)."},
        p.reusable_tokens_producer);
}

struct ContextRange {
  std::int64_t min = 0, max = 0;
};
inline std::optional<std::int64_t> parse_bound(std::string_view s) {
  s = trimmed(s, " ");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (s.empty() || error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return value;
}

/// "min-max", spaces allowed, min <= max; nothing when malformed.
inline std::optional<ContextRange> parse_context_range(std::string_view label) {
  const std::size_t dash = label.find('-');
  if (dash == std::string_view::npos || label.find('-', dash + 1) != std::string_view::npos)
    return std::nullopt;
  const auto min = parse_bound(label.substr(0, dash));
  const auto max = parse_bound(label.substr(dash + 1));
  if (!min || !max || *min > *max) return std::nullopt;
  return ContextRange{*min, *max};
}
/// Several ranges separated by commas; nothing when any is malformed.
inline std::optional<std::vector<ContextRange>> parse_context_ranges(std::string_view label) {
  std::vector<ContextRange> ranges;
  for (;;) {
    const std::size_t comma = label.find(',');
    const auto range = parse_context_range(label.substr(0, comma));
    if (!range) return std::nullopt;
    ranges.push_back(*range);
    if (comma == std::string_view::npos) return ranges;
    label.remove_prefix(comma + 1);
  }
}
/// In range: narrower ranges and more room score higher; outside: falls with the distance.
inline double context_range_score(const ContextRange& range, std::int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  const auto width = static_cast<double>(range.max - range.min);
  if (tokens < range.min || tokens > range.max) {
    const double distance = tokens < range.min ? static_cast<double>(range.min) - n
                                               : n - static_cast<double>(range.max);
    return 0.3 / (1 + distance / 1000);
  }
  if (width == 0) return 1.0;
  const double narrowness = 0.7 / (1 + width / 10000);
  const double room = 0.3 * (static_cast<double>(range.max) - n) / width;
  return 0.3 + 0.7 * (narrowness + room);
}

/// A scorer, and with enableFiltering a filter too. Heimdall allows several ranges in one label;
/// its rule for combining them is not public, so the best range counts (an assumption).
class ContextLengthAware final : public Filter, public Scorer {
 public:
  ContextLengthAware(const ContextLengthParameters& p, const PluginSpec& spec,
                     BuildContext& context)
      : filtering_(p.enable_filtering),
        several_ranges_(context.distribution() == Distribution::kHeimdall) {
    context.needs().prompt_tokens = true;
    label_ = p.label.value_or(several_ranges_ ? "mif.moreh.io/context-length-range"
                                              : "llm-d.ai/context-length-range");
    if (label_.empty()) context.error(spec, "label", "must not be empty");
    if (!p.reusable_tokens_producer.empty()) find_source(p, spec, context);
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    if (!filtering_) return;
    const std::int64_t n = routing_length(cycle);
    std::erase_if(candidates, [&](EndpointRow r) {
      const auto& labels = cycle.endpoints().info(r).labels;
      const auto it = labels.find(label_);
      if (it == labels.end()) return false;
      const auto ranges = parse(it->second);
      if (!ranges) return true;
      return std::none_of(ranges->begin(), ranges->end(), [n](const ContextRange& range) {
        return n >= range.min && n <= range.max;
      });
    });
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const std::int64_t n = routing_length(cycle);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto& labels = cycle.endpoints().info(candidates[i]).labels;
      const auto it = labels.find(label_);
      if (it == labels.end()) {
        scores[i] = 0.5;
        continue;
      }
      scores[i] = 0;
      if (const auto ranges = parse(it->second))
        for (const ContextRange& range : *ranges)
          scores[i] = std::max(scores[i], context_range_score(range, n));
    }
  }

 private:
  // llm-d-router pull request 2559 keeps work that remains apart from lengths of prompts.
  void find_source(const ContextLengthParameters& p, const PluginSpec& spec,
                   BuildContext& context) {
    constexpr std::string_view kParameter = "reusableTokensProducerName";
    if (context.traits().pull_source < PullSourceRule::kConfirmed)
      return context.error(spec, kParameter,
                           "does not exist in era " + std::string(policies::name(context.era())),
                           "set era 2026-09 or later");
    if (label_ == "llm-d.ai/context-length-range")
      context.error(spec, "label", "must not be " + label_ + " with " + std::string(kParameter),
                    "label endpoints with the ranges of tokens that remain to be computed");
    source_ = dynamic_cast<const PullSourceProducer*>(
        context.producer(p.reusable_tokens_producer, Facts::kReusableTokens, spec, kParameter));
  }
  // Prompt tokens, or those that a pull leaves to compute.
  std::int64_t routing_length(Cycle& cycle) const {
    const std::int64_t n = cycle.request().prompt_tokens;
    if (source_ == nullptr || n == 0) return n;
    return std::max<std::int64_t>(1, n - source_->reusable_tokens(cycle));
  }
  std::optional<std::vector<ContextRange>> parse(std::string_view label) const {
    if (several_ranges_) return parse_context_ranges(label);
    const auto range = parse_context_range(label);
    if (!range) return std::nullopt;
    return std::vector<ContextRange>{*range};
  }

  std::string label_;
  bool filtering_, several_ranges_;
  const PullSourceProducer* source_ = nullptr;
};

}  // namespace routesim::policies
