// One routing decision taken apart: what the router saw, what was true, and what another choice
// would have brought, found by making it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/config/document.h"
#include "sim/plan/resolve.h"
#include "sim/router/decision_probe.h"

namespace routesim::tools {

// The values that decide in an EndpointPickerConfig, defaults included, as text.

// What a step of a pool's servers takes, and where the time goes, as text.

/// The basis of the step times, and three steps: 1 and 64 sequences that decode, and a prompt. For
/// sums of measured kernels each operation with its share, its kernel and how well it is known.
std::string step_text(const sim::ResolvedPool& pool);

/// Era, profiles, profile handler, flow control and every plugin with its parameters, each value
/// with the place it came from or "default".
std::string router_text(const policies::EndpointPickerConfig& config);

/// The run with this request at one endpoint, everything before it unchanged.
struct Alternative {
  std::uint32_t row = 0;
  std::string endpoint;
  bool succeeded = false;
  double ttft_s = 0;     ///< The request's, as its client sees it.
  double latency_s = 0;  ///< Likewise.
  std::int64_t cached_tokens = 0;
  double mean_ttft_s = 0;     ///< Mean over the run's reported requests.
  double mean_latency_s = 0;  ///< Likewise.
};

struct DecisionStudy {
  std::string scenario, variant;
  std::uint64_t seed = 0;
  sim::DecisionRecord record;
  /// The real choice first, then the others by row.
  std::vector<Alternative> alternatives;
  bool all_tried = true;  ///< False when the fleet has more candidates than runs were made for.
  std::int64_t omniscient = -1;  ///< The row an omniscient router would have picked; -1 = none.
};

/// The most alternatives a study tries.
inline constexpr std::size_t kMostAlternatives = 16;

/// The requests that `explain --request` means.
struct RequestChoice {
  enum class By : std::uint8_t {
    kNumber,
    kSlowest,  ///< By time to first token.
    kRegret    ///< By the price of its decision above the best one (sim::Omniscient).
  };
  By by = By::kNumber;
  std::int64_t value = 0;  ///< The number, or how many.
};
/// Reads `17`, `worst` (= regret:1), `slowest:K` and `regret:K`; nothing for another text.
std::optional<RequestChoice> parse_request_choice(const std::string& text);
/// Numbers of the requests meant, the worst first. Runs `plan` to its end unless one is named.
std::vector<std::int64_t> find_requests(const sim::RunPlan& plan, const RequestChoice& choice,
                                        Diagnostics& diagnostics);

/// Runs `plan` until `request` is routed, then once more per alternative, up to `jobs` runs at a
/// time. Nothing, with an error at no place, when the run has no such request.
std::optional<DecisionStudy> study_decision(const sim::RunPlan& plan, std::int64_t request,
                                            std::size_t jobs, Diagnostics& diagnostics);

/// Why the pick won, in one sentence.
std::string why(const DecisionStudy& study);

/// TTFT of the real choice minus the best one's, seconds; 0 when nothing was better.
double regret_s(const DecisionStudy& study);

std::string render_decision_text(const DecisionStudy& study);
std::string render_decision_json(const DecisionStudy& study);

}  // namespace routesim::tools
