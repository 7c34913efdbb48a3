// The outcome of one scheduling decision, and the record of how it came about.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/views.h"

namespace routesim::policies {

/// Why a request has, or has not, a destination.
enum class Outcome {
  kRouted,
  kNoEndpoints,         ///< The pool, or the subset named by the request, is empty: 503.
  kFilteredOut,         ///< Filters left nothing: 429 "saturated", in older eras 500.
  kRefused,             ///< Admission refused a sheddable request: 429.
  kPreconditionFailed,  ///< `Prefer: if-available` and nothing cached at the target: 412.
  kHandlerError,        ///< The profile handler could not make a result: 500.
};
inline constexpr std::array<std::string_view, 6> kOutcomeNames = {
    "routed", "no-endpoints", "filtered-out", "refused", "precondition-failed", "handler-error"};

enum class ProfileState : std::uint8_t { kNotRun, kFailed, kOk };

struct ProfileResult {
  ProfileState state = ProfileState::kNotRun;
  std::vector<EndpointRow> targets;  ///< Best first; may be empty only for a handler's own reasons.

  bool ok() const { return state == ProfileState::kOk; }
  bool has_target() const { return ok() && !targets.empty(); }
};

/// A small fact a plugin keeps from deciding to routing, because scoring itself is const.
struct Note {
  std::uint32_t plugin = 0;  ///< Plugin::index().
  std::uint32_t key = 0;     ///< Usually an endpoint row; the plugin's own business.
  std::int64_t value = 0;
};

/// One decision. Reuse the object to keep its buffers: then deciding allocates nothing.
struct Decision {
  Outcome outcome = Outcome::kNoEndpoints;
  int http_status = 503;
  const char* reason = "";  ///< Static text; empty when routed.
  EndpointId primary;       ///< The target; invalid unless routed.
  EndpointId prefill;       ///< The prefill endpoint named to the side-car, if any.
  /// The endpoint to pull KV blocks from before the prompt is computed, if any, and the tokens of
  /// the prompt that it holds. The side-car of the endpoint that computes the prompt pulls.
  EndpointId pull_source;
  std::int64_t pull_source_tokens = 0;
  std::vector<EndpointRow> targets;         ///< The primary, then the fallbacks for the proxy.
  std::vector<EndpointRow> encode_targets;  ///< Encoders of a disaggregated multimodal request.
  std::int32_t primary_profile = -1;        ///< Index of the primary profile; -1 = none.
  /// Index of the profile named "prefill" if it found targets (whatever the handler calls its
  /// prefill profile: caches and counters go by the name); -1 = none.
  std::int32_t prefill_profile = -1;
  /// Port that replaces the target's own (data parallel side-car); negative = unchanged.
  std::int32_t destination_port = -1;
  std::vector<ProfileResult> profiles;  ///< By profile index, in document order.
  /// Headers to add to the forwarded request, such as x-prefiller-host-port.
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<Note> notes;

  bool routed() const { return outcome == Outcome::kRouted; }
  void clear() {
    outcome = Outcome::kNoEndpoints;
    http_status = 503;
    reason = "";
    primary = prefill = pull_source = EndpointId();
    pull_source_tokens = 0;
    targets.clear();
    encode_targets.clear();
    primary_profile = prefill_profile = destination_port = -1;
    for (ProfileResult& r : profiles) {
      r.state = ProfileState::kNotRun;
      r.targets.clear();
    }
    headers.clear();
    notes.clear();
  }
  /// The value a plugin noted under a key, or `fallback`.
  std::int64_t note(std::uint32_t plugin, std::uint32_t key, std::int64_t fallback) const {
    for (const Note& n : notes)
      if (n.plugin == plugin && n.key == key) return n.value;
    return fallback;
  }
  void set_note(std::uint32_t plugin, std::uint32_t key, std::int64_t value) {
    for (Note& n : notes) {
      if (n.plugin == plugin && n.key == key) {
        n.value = value;
        return;
      }
    }
    notes.push_back({plugin, key, value});
  }
};

/// How one profile came to its result: what `explain` and `score` print.
struct ProfileExplanation {
  struct FilterStep {
    std::string plugin;
    std::vector<EndpointRow> survivors;
  };
  struct ScorerStep {
    std::string plugin;
    double weight = 1;
    std::vector<double> scores;  ///< Raw, parallel to `scored`; kUnscored where it abstained.
  };
  std::string profile;
  ProfileState state = ProfileState::kNotRun;
  std::vector<EndpointRow> candidates;  ///< The input of the filters.
  std::vector<FilterStep> filters;
  std::vector<EndpointRow> scored;  ///< Survivors of all filters.
  std::vector<ScorerStep> scorers;
  std::vector<double> totals;  ///< Clamped, weighted sums, parallel to `scored`.
  std::string picker;
  std::vector<EndpointRow> picked;
};

struct Explanation {
  std::vector<ProfileExplanation> profiles;  ///< In the order they ran.
};

}  // namespace routesim::policies
