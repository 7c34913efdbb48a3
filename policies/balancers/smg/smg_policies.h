// The policies of smg.h, one leg each. For smg.cpp and the sources beside it.
#pragma once

#include "policies/balancers/kit/legs.h"
#include "policies/balancers/smg/smg.h"

namespace routesim::policies {

inline SmgRelease smg_release(const SmgSettings& s) {
  return release_of<SmgRelease>(kSmgReleases, s.release);
}
/// Whether servers answer the gateway's load poll. vLLM has no /get_load, which is all that the
/// releases before 1.5 ask for.
inline bool smg_polls(const SmgSettings& s) {
  return s.load_monitor.value_or(smg_release(s) >= SmgRelease::k1_5);
}

/// A chat's text in P/D: up to sglang-router 0.3.2 the first message (sglang #26263, PR 27430).
inline ChatText smg_chat_text(SmgRelease release) {
  return release < SmgRelease::k1_5 ? ChatText::kFirstMessage : ChatText::kMessages;
}

/// The value of x-smg-routing-key, if it counts (crates/external_router/src/header_utils.rs).
std::optional<std::string_view> smg_routing_key(const BalancerRequest& request, SmgRelease release);

/// The time until a server would begin with a request, by its own last report and what was sent to
/// it since (src/policies/least_load.rs). Servers that report nothing have the least of the others
/// and their requests in flight on top; where nobody reports, requests in flight alone count.
class SmgExpectedWait {
 public:
  SmgExpectedWait(const SmgSettings& s, const RandomStream& random)
      : settings_(s), release_(smg_release(s)), polls_(smg_polls(s)), random_(random) {}
  BalancerNeeds needs() const;
  /// The candidate that waits least; the request is added to what was sent to it.
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request,
                                    std::vector<std::uint32_t> candidates);
  void on_workers(const Leg& leg);

 private:
  /// Sent since the report with these numbers.
  struct Sent {
    SimTime report;
    double waiting = 0, running = 0, kv_usage = 0;
    double tokens = 0, requests = 0;
  };
  double request_tokens() const {
    return static_cast<double>(settings_.least_load_mean_prefill_tokens);
  }
  Sent& sent(std::uint32_t w) { return sent_[names_.tenant(w)]; }
  void read_report(const EndpointTable& metrics, std::uint32_t w);
  double unaccounted(const Leg& leg, std::uint32_t w);
  double seconds(const Leg& leg, std::uint32_t w);

  SmgSettings settings_;
  SmgRelease release_;
  bool polls_;
  RandomStream random_;
  TenantNames names_;
  std::vector<Sent> sent_;  ///< By tenant.
};

std::unique_ptr<LegPolicy> make_smg_power_of_two(const SmgSettings& s, const RandomStream& random);
std::unique_ptr<LegPolicy> make_smg_least_load(const SmgSettings& s, const RandomStream& random);
std::unique_ptr<LegPolicy> make_smg_cache_aware(const SmgSettings& s, const RandomStream& random);
std::unique_ptr<LegPolicy> make_smg_manual(const SmgSettings& s, const RandomStream& random);
std::unique_ptr<LegPolicy> make_smg_bucket(const SmgSettings& s, const RandomStream& random);

}  // namespace routesim::policies
