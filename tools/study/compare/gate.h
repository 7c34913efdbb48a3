// `compare --fail-if`: a change for the worse that is too large.
#pragma once

#include <span>
#include <string>

#include "tools/results/difference.h"

namespace routesim::tools {

/// `ttft_ms.p99>+5%` (the new mean is more than 5 % above the base's), `output_tokens_per_s<-2%`,
/// `ttft_ms.p99>+20` (more than 20 ms above), `ttft_ms.p99>500` (the new mean itself).
struct Gate {
  enum class Kind { kRelative, kAbsolute, kValue };
  std::string text;  ///< As written.
  MetricName metric;
  bool greater = true;  ///< Fails above the bound; else below it.
  Kind kind = Kind::kRelative;
  double bound = 0;  ///< Percent, or the metric's unit.
};

Parsed<Gate> parse_gate(const std::string& text);

/// Holds when the whole interval stays within the bound, fails when all of it is beyond, and is
/// undecided otherwise. Single runs have no interval: their numbers decide. A relative gate asks
/// for new - (1 + bound) base, so that no ratio of noisy numbers is taken.
Decision judge_gate(const Gate& gate, std::span<const double> base, std::span<const double> changed,
                    bool paired);

}  // namespace routesim::tools
