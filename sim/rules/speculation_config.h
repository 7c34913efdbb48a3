// Speculative decoding of one engine core: what the user says, and what the scheduler needs of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"

namespace routesim::sim {

/// The kinds of drafters, as vLLM's --speculative-config names them.
enum class SpeculationMethod { kEagle3, kEagle, kMtp, kDraftModel, kNgram };

/// The most tokens that one step may guess.
inline constexpr std::int64_t kMostDrafts = 64;

/// vLLM's --speculative-config as far as it is simulated.
struct SpeculationConfig {
  std::optional<SpeculationMethod> method;
  std::string model;
  std::optional<std::int64_t> num_speculative_tokens;
  std::vector<double> acceptance;
};
void describe(Describer& d, SpeculationConfig& c);

/// The same with every value decided. The default guesses nothing.
struct SpeculationRules {
  std::int64_t tokens = 0;     ///< k: guesses per sequence and step.
  std::int64_t lookahead = 0;  ///< KV slots beyond those of the step, for the drafter's own passes.
  /// The last block of a prefix hit is computed again: the drafter needs its hidden states.
  bool drops_last_hit = false;
  /// Share of steps with drafts in which at least the first i + 1 are accepted; never rising.
  std::vector<double> acceptance;

  bool in_use() const { return tokens > 0; }
  /// Mean tokens that a step yields: the accepted ones and the one that the target adds.
  double mean_length() const {
    double length = 1;
    for (const double share : acceptance) length += share;
    return length;
  }
};

/// Shares of accepted drafts by position where somebody published them for a method, at most `k`;
/// fewer, or none, where nobody did.
std::vector<double> published_acceptance(SpeculationMethod method, std::int64_t k);

/// Of vLLM's V1 engine, v0.12 to v0.24: drafters that have KV of their own look k slots ahead
/// (Scheduler.num_lookahead_tokens), EAGLE's and MTP's kinds drop the last block of a hit
/// (SpeculativeConfig.use_eagle). The config must have a method and a number of tokens.
SpeculationRules resolve_speculation(const SpeculationConfig& config);

/// The next step can be scheduled before the drafts are known. vLLM allows it for drafters on the
/// GPU (`Currently, async scheduling is only supported with EAGLE/MTP/Draft Model`, VllmConfig of
/// v0.17.1); by default it is off for the others, and in `early` releases for draft models.
bool schedules_ahead(SpeculationMethod method, bool early);

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::SpeculationMethod> {
  static constexpr std::array<std::string_view, 5> value = {"eagle3", "eagle", "mtp", "draft_model",
                                                            "ngram"};
};
