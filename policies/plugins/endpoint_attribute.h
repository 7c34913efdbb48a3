// endpoint-attribute-scorer and the multicluster scorers: scores from numeric endpoint attributes.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/{endpointattribute,queuedepth}.
#pragma once

#include <cmath>
#include <limits>

#include "policies/build_context.h"

namespace routesim::policies {

struct FixedRange {
  double min = 0, max = 0;
};
inline void describe(Describer& d, FixedRange& p) {
  field(d, {"min", "Lower end."}, p.min);
  field(d, {"max", "Upper end."}, p.max);
}

/// The key that is there selects the mode; none is adaptiveRange.
struct AttributeNormalization {
  std::optional<FixedRange> fixed_range;
  std::optional<NoParameters> adaptive_range;
};
inline void describe(Describer& d, AttributeNormalization& p) {
  field(d, {"fixedRange", "Score between these bounds."}, p.fixed_range);
  field(d, {"adaptiveRange", "Score between the candidates' extremes (the default)."},
        p.adaptive_range);
}

struct AttributeAlgorithm {
  std::string type;
  AttributeNormalization normalization;
};
inline void describe(Describer& d, AttributeAlgorithm& p) {
  field(d, {"type", "linear_lower_is_better or linear_higher_is_better.", true}, p.type);
  field(d, {"normalization", "How values map to 0..1."}, p.normalization);
}

struct AttributeScorerParameters {
  std::string attribute, attribute_key, producer = "core-metrics-extractor";
  AttributeAlgorithm algorithm;
};
inline void describe(Describer& d, AttributeScorerParameters& p) {
  field(d, {"attributeKey", "Numeric endpoint attribute to score."}, p.attribute_key);
  field(d, {"attribute", "Other name of attributeKey."}, p.attribute);
  field(d, {"producer", "Instance that writes it."}, p.producer);
  field(d, {"algorithm", "How values become scores."}, p.algorithm);
}

/// The attribute of a row, NaN where missing.
inline double attribute_at(std::span<const double> column, EndpointRow row) {
  return row < column.size() ? column[row] : std::numeric_limits<double>::quiet_NaN();
}

/// The attribute of each candidate. Valid until the next use of the cycle's value buffer.
inline std::span<const double> attribute_values(Cycle& cycle, std::string_view key,
                                                std::span<const EndpointRow> candidates) {
  const std::span<const double> column = cycle.endpoints().attribute(key);
  std::vector<double>& values = cycle.value_buffer();
  values.clear();
  for (const EndpointRow r : candidates) values.push_back(attribute_at(column, r));
  return values;
}

/// Linear between the bounds (of the candidates that have the value, unless fixed). Values outside
/// fixed bounds are clamped; a missing value scores `missing`; equal bounds score 1.
inline void attribute_scores(std::span<const double> values, bool lower_is_better,
                             std::optional<FixedRange> fixed, double missing,
                             std::span<double> scores) {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -lowest;
  for (const double v : values) {
    if (std::isnan(v)) continue;
    lowest = std::min(lowest, v);
    highest = std::max(highest, v);
  }
  if (fixed) {
    lowest = fixed->min;
    highest = fixed->max;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      scores[i] = missing;
    } else if (lowest == highest) {
      scores[i] = 1;
    } else {
      const double v = std::clamp(values[i], lowest, highest);
      scores[i] = (lower_is_better ? highest - v : v - lowest) / (highest - lowest);
    }
  }
}

class EndpointAttributeScorer final : public Scorer {
 public:
  EndpointAttributeScorer(const AttributeScorerParameters& p, const PluginSpec& spec,
                          BuildContext& context)
      : key_(p.producer + "/" + (p.attribute_key.empty() ? p.attribute : p.attribute_key)),
        lower_is_better_(p.algorithm.type != "linear_higher_is_better"),
        fixed_(p.algorithm.normalization.fixed_range) {
    if (p.attribute_key.empty() && p.attribute.empty())
      context.error(spec, "attributeKey", "is required but missing");
    if (p.algorithm.type != "linear_lower_is_better" &&
        p.algorithm.type != "linear_higher_is_better")
      context.error(spec, "algorithm.type",
                    "must be linear_lower_is_better or linear_higher_is_better (got '" +
                        p.algorithm.type + "')");
    if (fixed_ && p.algorithm.normalization.adaptive_range)
      context.error(spec, "algorithm.normalization",
                    "has both fixedRange and adaptiveRange, which exclude each other");
    if (fixed_ && !(fixed_->min < fixed_->max))
      context.error(spec, "algorithm.normalization.fixedRange", "needs min < max");
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    attribute_scores(attribute_values(cycle, key_, candidates), lower_is_better_, fixed_, 0,
                     scores);
  }

 private:
  std::string key_;
  bool lower_is_better_;
  std::optional<FixedRange> fixed_;
};

/// Asks for the attributes. Upstream creates no extractor, and loads no document without one.
inline void require_pool_metrics(const PluginSpec& spec, BuildContext& context) {
  context.needs().pool_metrics = true;
  const auto& plugins = context.config().plugins;
  if (std::none_of(plugins.begin(), plugins.end(),
                   [](const PluginSpec& p) { return p.type == "multicluster-metrics-extractor"; }))
    context.error(spec, "", "needs a multicluster-metrics-extractor, and there is none",
                  "declare one, and list it under a multicluster-metrics-data-source in dataLayer");
}

/// multicluster-queue-scorer: inverse min-max; endpoints without the attribute are left out.
class MulticlusterQueueScorer final : public Scorer {
 public:
  MulticlusterQueueScorer(const NoParameters&, const PluginSpec& spec, BuildContext& context) {
    require_pool_metrics(spec, context);
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    attribute_scores(attribute_values(cycle, kPoolQueueAttribute, candidates), true, std::nullopt,
                     kUnscored, scores);
  }
};

/// multicluster-kv-cache-utilization-scorer: 1 - usage; endpoints without it are left out.
class MulticlusterKvScorer final : public Scorer {
 public:
  MulticlusterKvScorer(const NoParameters&, const PluginSpec& spec, BuildContext& context) {
    require_pool_metrics(spec, context);
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const auto usage = attribute_values(cycle, kPoolKvAttribute, candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = std::isnan(usage[i]) ? kUnscored : 1 - usage[i];
  }
};

}  // namespace routesim::policies
