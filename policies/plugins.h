// The extension surface, whole: what a plugin can be. To add one, see README.md.
//
// The rules: no clock but Cycle::now(), no randomness but the Cycle's streams, no memory but what
// the hooks change. Deciding is const and may run on several threads at once; a plugin whose hooks
// change state guards that state itself.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/units.h"
#include "policies/cycle.h"
#include "policies/decision.h"
#include "policies/views.h"

namespace routesim::policies {

/// The hooks of Plugin that every request runs through.
enum class Hook : std::uint8_t {
  kRouted,
  kResponseStarted,
  kFirstToken,
  kAnswered,
  kCompleted,
  kAdvance,
  kDecided,
  kArrived
};
inline constexpr std::size_t kHookCount = 8;

/// Base of every plugin: its identity and its hooks.
class Plugin {
 public:
  virtual ~Plugin() = default;
  const std::string& name() const { return name_; }  ///< Unique in the document.
  const std::string& type() const { return type_; }
  std::uint32_t index() const { return index_; }  ///< Key of its notes.

  /// PreRequest: the request is about to be forwarded as decided.
  virtual void on_routed(const RequestView&, const Decision&, const EndpointTable&, SimTime) {}
  /// The headers of a streamed response have arrived, which is before its first token.
  virtual void on_response_started(std::uint64_t /*request*/, SimTime) {}
  /// The first chunk of the response has arrived.
  virtual void on_first_token(std::uint64_t /*request*/, SimTime) {}
  /// The whole response is there, and has so many tokens. on_completed follows.
  virtual void on_answered(std::uint64_t /*request*/, std::int64_t /*output_tokens*/, SimTime) {}
  /// The response ended, completely or not.
  virtual void on_completed(std::uint64_t /*request*/, SimTime) {}
  /// An endpoint left the pool; its row may be reused.
  virtual void on_endpoint_removed(EndpointRow, SimTime) {}
  /// Time passes: expire what is due.
  virtual void advance(SimTime) {}
  /// Headers this plugin adds to the response to the client.
  virtual void response_headers(const Decision&, const EndpointTable&,
                                std::vector<std::pair<std::string, std::string>>&) const {}
  /// A request wants to be decided: the earliest time for it. Called again at that time.
  virtual SimTime on_arrived(const RequestView&, const EndpointTable&, SimTime now) { return now; }
  /// After the profiles have run: note what on_routed will need and only the Cycle knows.
  virtual void on_decided(Cycle&, Decision&) const {}

 private:
  friend class PluginSet;
  template <class T, class... Args>
  friend std::unique_ptr<Plugin> make_plugin(Args&&... args);
  std::string name_, type_;
  std::uint32_t index_ = 0;
  std::bitset<kHookCount> hooks_ = ~std::bitset<kHookCount>();  ///< Hooks to call.
};

/// A plugin of class T, of which only the hooks are called that T, or a base of it, overrides:
/// requests come by the million, and most plugins have one hook or none.
template <class T, class... Args>
std::unique_ptr<Plugin> make_plugin(Args&&... args) {
  std::unique_ptr<Plugin> plugin = std::make_unique<T>(std::forward<Args>(args)...);
  // The type of a pointer to a member names the class that declares the member.
  const auto set = [&](Hook hook, bool inherited) {
    plugin->hooks_.set(static_cast<std::size_t>(hook), !inherited);
  };
  using P = Plugin;
  set(Hook::kRouted, std::is_same_v<decltype(&T::on_routed), decltype(&P::on_routed)>);
  set(Hook::kResponseStarted,
      std::is_same_v<decltype(&T::on_response_started), decltype(&P::on_response_started)>);
  set(Hook::kFirstToken,
      std::is_same_v<decltype(&T::on_first_token), decltype(&P::on_first_token)>);
  set(Hook::kAnswered, std::is_same_v<decltype(&T::on_answered), decltype(&P::on_answered)>);
  set(Hook::kCompleted, std::is_same_v<decltype(&T::on_completed), decltype(&P::on_completed)>);
  set(Hook::kAdvance, std::is_same_v<decltype(&T::advance), decltype(&P::advance)>);
  set(Hook::kDecided, std::is_same_v<decltype(&T::on_decided), decltype(&P::on_decided)>);
  set(Hook::kArrived, std::is_same_v<decltype(&T::on_arrived), decltype(&P::on_arrived)>);
  return plugin;
}

/// The kind of facts a producer provides, so that a parameter cannot name another kind.
enum class Facts { kPrefixMatches, kLatencyEstimates, kLoad, kReusableTokens, kTtftPercentiles };
inline constexpr std::array<std::string_view, 5> kFactsNames = {
    "prefix match info", "latency predictions", "load", "reusable tokens", "TTFT percentiles"};

/// Writes facts about the request and the candidates into the Cycle before any profile runs.
class Producer : public virtual Plugin {
 public:
  virtual void produce(Cycle& cycle) const = 0;
  virtual Facts facts() const = 0;
};

/// Narrows the candidates, keeping their order, which is ascending.
class Filter : public virtual Plugin {
 public:
  virtual void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const = 0;
};

/// Gives every candidate a score, nominally in [0, 1]; the profile clamps and weights it.
class Scorer : public virtual Plugin {
 public:
  /// `scores` is parallel to `candidates`; write kUnscored to abstain.
  virtual void score(Cycle& cycle, std::span<const EndpointRow> candidates,
                     std::span<double> scores) const = 0;
};

/// Chooses among the scored candidates, best first.
class Picker : public virtual Plugin {
 public:
  virtual void pick(Cycle& cycle, std::span<const EndpointRow> candidates,
                    std::span<const double> totals, std::vector<EndpointRow>& picked) const = 0;
};

/// Names of the profiles by index, as the handler sees them.
using ProfileNames = std::span<const std::string>;

/// Decides which profiles run, and makes the decision out of their results.
class ProfileHandler : public virtual Plugin {
 public:
  /// Appends the indices of the profiles to run next; none = done. `results` is by index.
  virtual void next(Cycle& cycle, ProfileNames profiles, std::span<const ProfileResult> results,
                    std::vector<std::uint32_t>& run) const = 0;
  /// Fills primary_profile and drops or keeps results; returns an error text, or nullptr.
  virtual const char* process(Cycle& cycle, ProfileNames profiles, Decision& decision) const = 0;
};

/// Says whether a request should be disaggregated, given the decode pick.
class Decider : public virtual Plugin {
 public:
  virtual bool disaggregate(const Cycle& cycle, std::optional<EndpointRow> decode) const = 0;
};

/// Measures how full the pool is: 1 and more means saturated.
class SaturationDetector : public virtual Plugin {
 public:
  virtual double saturation(const EndpointTable& endpoints, std::span<const EndpointRow> candidates,
                            SimTime now) const = 0;
};

/// May refuse a request before it is scheduled.
class Admitter : public virtual Plugin {
 public:
  /// The reason for refusing, or nullptr.
  virtual const char* refuse(Cycle& cycle) const = 0;
};

/// Requests that this router sent and that have not completed, by endpoint. Counts are exact.
class InFlightCounts {
 public:
  virtual ~InFlightCounts() = default;
  virtual std::int64_t requests(EndpointRow row) const = 0;
  virtual std::int64_t tokens(EndpointRow row) const = 0;
  /// Requests over all endpoints.
  virtual std::size_t tracked_requests() const = 0;
};

/// A request waiting in flow control.
struct QueuedRequest {
  std::uint64_t id = 0;
  std::int32_t priority = 0;
  std::string flow;        ///< Fairness id.
  std::int64_t bytes = 0;  ///< Size that counts against the byte limits.
  SimTime received;
  SimTime enqueued;
  Duration ttl;            ///< Zero = never expires.
  double slo_ttft_ms = 0;  ///< Zero or less = none.
};

/// Orders the requests of one flow: the smallest key goes first, ties by arrival.
class OrderingPolicy : public virtual Plugin {
 public:
  virtual SimTime key(const QueuedRequest& request) const = 0;
};

/// The non-empty queue of one flow, as a fairness policy sees it.
struct FlowQueue {
  const std::string* flow = nullptr;
  const QueuedRequest* head = nullptr;
  SimTime head_key;                 ///< By the band's ordering policy.
  std::uint64_t head_sequence = 0;  ///< Order of arrival.
  double service = 0;               ///< Decayed prompt + 2 · completion tokens of the flow.
  std::int64_t sent = 0;            ///< Requests of the flow that were forwarded,
  std::int64_t in_flight = 0;       ///< and those of them that have not ended.
  std::optional<SimTime> last_end;  ///< When the last one ended.
};

/// Chooses which flow of a band is served next. `last` is the flow served before in this band.
class FairnessPolicy : public virtual Plugin {
 public:
  /// Index into `queues`, which are sorted by flow and not empty.
  virtual std::size_t choose(std::span<const FlowQueue> queues, const std::string& last,
                             SimTime now) const = 0;
};

/// Says up to which saturation each priority band may dispatch. May count its calls.
class UsageLimitPolicy : public virtual Plugin {
 public:
  /// `priorities` descend; `ceilings` is parallel.
  virtual void ceilings(std::span<const std::int32_t> priorities, double saturation,
                        std::span<double> ceilings) = 0;
};

}  // namespace routesim::policies
