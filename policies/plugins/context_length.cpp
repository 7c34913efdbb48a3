#include "policies/plugins/context_length.h"

#include <algorithm>
#include <charconv>

namespace routesim::policies {
namespace {

std::optional<std::int64_t> parse_integer(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (s.empty() || error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ContextRange> parse_context_range(std::string_view label) {
  const std::size_t dash = label.find('-');
  if (dash == std::string_view::npos || label.find('-', dash + 1) != std::string_view::npos)
    return std::nullopt;
  const auto min = parse_integer(label.substr(0, dash));
  const auto max = parse_integer(label.substr(dash + 1));
  if (!min || !max || *min > *max) return std::nullopt;
  return ContextRange{*min, *max};
}

std::optional<std::vector<ContextRange>> parse_context_ranges(std::string_view label) {
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

double context_range_score(const ContextRange& range, std::int64_t tokens) {
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

ContextLengthAware::ContextLengthAware(const ContextLengthParameters& p, const PluginSpec& spec,
                                       BuildContext& context)
    : filtering_(p.enable_filtering),
      several_ranges_(context.distribution() == Distribution::kHeimdall) {
  context.needs().prompt_tokens = true;
  label_ = p.label.value_or(several_ranges_ ? "mif.moreh.io/context-length-range"
                                            : "llm-d.ai/context-length-range");
  if (label_.empty()) context.error(spec, "label", "must not be empty");
}

std::optional<std::vector<ContextRange>> ContextLengthAware::parse(std::string_view label) const {
  if (several_ranges_) return parse_context_ranges(label);
  const auto range = parse_context_range(label);
  if (!range) return std::nullopt;
  return std::vector<ContextRange>{*range};
}

void ContextLengthAware::filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const {
  if (!filtering_) return;
  const std::int64_t n = cycle.request().prompt_tokens;
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

void ContextLengthAware::score(Cycle& cycle, std::span<const EndpointRow> candidates,
                               std::span<double> scores) const {
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
        scores[i] = std::max(scores[i], context_range_score(range, cycle.request().prompt_tokens));
  }
}

}  // namespace routesim::policies
