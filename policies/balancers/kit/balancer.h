// The interface of load balancers that are not llm-d's endpoint picker: other products' routers and
// the baselines people compare with. Each keeps its own counts, so several router replicas are
// several objects. One thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "policies/balancers/kit/prompt_text.h"
#include "policies/index/block_keys.h"
#include "policies/views.h"

namespace routesim::policies {

class PrefixIndex;

enum class ServerRole : std::uint8_t { kBoth, kPrefill, kDecode };

/// A server a balancer can pick.
struct BalancerEndpoint {
  std::string name;  ///< Pod, host and port, or URL, as the product names it. Rings hash it.
  std::vector<std::string> adapters = {};  ///< LoRA adapters it serves.
  double weight = 1;                       ///< Above 0 (Envoy's load_balancing_weight).
  bool healthy = true;                     ///< Healthy by the product's health checks.
  bool degraded = false;                   ///< Envoy: serves what the healthy ones cannot.
  std::string hash_key = {};               ///< Envoy: its place on a ring; "" = its name.
  ServerRole role = ServerRole::kBoth;
  std::string deployment = {};  ///< The kind of server; "" where all are of one.
  std::string group = {};  ///< Prefill and decode servers that belong together (AIBrix roleset).
  std::int64_t block_size = 0;          ///< KV block in tokens; 0 = unknown.
  std::int64_t kv_blocks = 0;           ///< KV blocks of the server; 0 = unknown.
  std::int64_t max_batched_tokens = 0;  ///< max_num_batched_tokens; 0 = unknown.
};

/// The part of a request that a balancer may look at. Views are only read during the call. Fields
/// that needs() does not ask for may be empty.
struct BalancerRequest {
  std::string_view prefix = {};   ///< Text whose first characters prefix-hash uses
                                  ///< (see prefix_source()).
  std::string_view adapter = {};  ///< Requested LoRA adapter, "" for the base model.
  std::uint64_t id = 0;           ///< Unique among requests in flight.
  /// The held request whose turn this attempt is; another one's with needs().in_order.
  std::uint64_t turn = 0;
  SimTime now{};
  PromptText text = {};            ///< The prompt; needs().text.
  PromptText token_text = {};      ///< Its tokens, with the chat template; needs().token_runs.
  std::int64_t prompt_tokens = 0;  ///< Length of the prompt, where the product counts tokens.
  std::span<const std::uint32_t> tokens = {};  ///< Its first needs().leading_tokens token ids.
  std::span<const BlockKey> block_keys = {};   ///< Keys of its full blocks; needs().block_keys.
  std::span<const Header> headers = {};
  std::string_view session = {};  ///< Conversation, as a client would name it; "" = none.
  std::string_view user = {};     ///< Tenant; without data = none, which "" is not.
  std::optional<std::int64_t> max_tokens = {};
  std::int32_t priority = 0;
  /// Row i is endpoint i, as last scraped; null unless needs().metrics.
  const EndpointTable* metrics = nullptr;

  /// The value of a header (names ignore case), or nothing.
  std::optional<std::string_view> header(std::string_view name) const;
};

/// A decision. Hand it back unchanged to on_sent(), on_first_token() and on_completed().
struct BalancerPick {
  std::uint32_t endpoint = 0;    ///< Index into the endpoints last given to set_endpoints().
  std::uint32_t server = 0;      ///< The same server, whatever set_endpoints() does later.
  std::uint32_t connection = 0;  ///< k8s-service only: which connection carries the request.
  /// The endpoint that computes the prompt for `endpoint`, and its server.
  std::optional<std::uint32_t> prefill = {};
  std::uint32_t prefill_server = 0;
};

/// Bounds of one decision, for a caller that filters servers itself, as a gateway's subset hint
/// does, and for one that replays the decisions of a real router. Numbers are indexes of endpoints.
struct PickTerms {
  /// The endpoints that may be chosen; empty = all. The others are passed over as servers that may
  /// not get requests are; they keep their places on rings and in trees.
  std::span<const std::uint32_t> candidates = {};
  /// The endpoint that gets the request, whatever the rules choose, hold or refuse. The rules
  /// decide first, with all their scores and draws; then everything that the balancer remembers
  /// goes on as if they had chosen this one. It is one of the candidates where there are some.
  std::optional<std::uint32_t> forced = {};
  /// The same for the endpoint that computes the prompt. Without it the rules choose that one.
  std::optional<std::uint32_t> forced_prefill = {};
};

/// The outcome of a decision: a pick, or the reason why there is none.
class BalancerAnswer {
 public:
  BalancerAnswer(BalancerPick pick) : pick_(pick) {}           // NOLINT: converts like optional.
  BalancerAnswer(std::nullopt_t) {}                            // NOLINT: the same.
  BalancerAnswer(std::optional<BalancerPick> p) : pick_(p) {}  // NOLINT: the same.
  /// The request waits in the router's own queue. Ask again when a request of this router has got
  /// its first token (with needs().first_tokens) or has ended.
  static BalancerAnswer held();
  /// The same, but ask again after this time (above zero), whatever happens until then.
  static BalancerAnswer held(Duration retry_after);
  static BalancerAnswer refused(int http_status);

  bool has_value() const { return pick_.has_value(); }
  explicit operator bool() const { return pick_.has_value(); }
  BalancerPick& operator*() { return *pick_; }
  const BalancerPick& operator*() const { return *pick_; }
  const BalancerPick* operator->() const { return &*pick_; }
  bool is_held() const { return held_; }
  /// The wait of a held request until it is tried again; zero = until something has changed.
  Duration retry_after() const { return retry_after_; }
  /// The status without a pick, unless the request is held.
  int http_status() const { return http_status_; }

 private:
  std::optional<BalancerPick> pick_;
  bool held_ = false;
  Duration retry_after_ = Duration::zero();
  int http_status_ = 503;
};

/// The facts of a finished request that a proxy sees.
struct BalancerOutcome {
  std::uint64_t id = 0;  ///< BalancerRequest::id.
  SimTime now{};
  std::int64_t prompt_tokens = 0;  ///< From the answer's usage.
  std::int64_t output_tokens = 0;  ///< Likewise; 0 for a request that failed.
};

/// The part of a chat that a router reads as its text.
enum class ChatText : std::uint8_t { kMessages, kFirstMessage, kNone };

/// The inputs a balancer reads beside names and its own counts. Their owner computes no others.
struct BalancerNeeds {
  bool metrics = false;
  /// How often the product polls its servers' metrics; zero = not its own business.
  Duration metrics_interval = Duration::zero();
  bool text = false;
  /// `text` of a chat, without and with prefill servers. With kNone it has no block keys either.
  ChatText chat_text = ChatText::kMessages, chat_text_with_prefill = ChatText::kMessages;
  /// Without prefill servers it reads the prompt alone, so that no user is known.
  bool body_with_prefill_only = false;
  bool token_runs = false;
  std::int64_t leading_tokens = 0;
  bool block_keys = false;
  bool kv_events = false;  ///< prefix_index() must be fed with the servers' KV events.
  bool first_tokens = false;
  /// Held requests of one router that are tried, oldest first, per endpoint; the rest wait behind
  /// them. 0 = the oldest alone, so that nobody overtakes.
  std::int64_t tried_per_endpoint = 0;
  std::int64_t tried_at_most = std::numeric_limits<std::int64_t>::max();  ///< Of all endpoints.
  /// Whichever of the tried requests has its turn, the oldest one takes the server it finds.
  bool in_order = false;
  bool identity = false;  ///< Headers, session and user.
  /// Headers and cookies that carry a client's session, where clients have one.
  std::vector<std::string> session_headers = {};
  /// Further headers that it reads where a load sends them.
  std::vector<std::string> other_headers = {};
  std::vector<std::string> session_cookies = {};
};

/// The interface: pick() -> on_sent() [-> on_first_token()] -> on_completed(), in event order.
class Balancer {
 public:
  virtual ~Balancer() = default;
  /// Replaces the endpoint set. Counts of endpoints that stay (by name) are kept; requests at
  /// endpoints that left count in total_in_flight() until they complete, but not at an endpoint
  /// that returns under the name. prefix_index() forgets an endpoint that left.
  virtual void set_endpoints(std::span<const BalancerEndpoint> endpoints);
  /// The same for every call of one object.
  virtual BalancerNeeds needs() const { return {}; }
  /// The index that KV events feed, by index_holder(); null unless needs().kv_events.
  virtual PrefixIndex* prefix_index() { return nullptr; }
  /// Under which id prefix_index() knows endpoint i. An endpoint keeps its id over set_endpoints()
  /// for as long as it is there. Ids only grow: no other endpoint ever gets the id of one that
  /// left, and one that returns under its name gets a new id. The endpoints of the first call have
  /// the ids 0, 1, 2, …, where no two have one name. It is BalancerPick::server, too.
  std::uint32_t index_holder(std::uint32_t i) const { return server_of_[i]; }
  /// Chooses an endpoint. It may turn rotations and change trees: call it once per attempt.
  virtual BalancerAnswer pick(const BalancerRequest& request) = 0;
  /// The same within terms. (A class that overrides pick() hides this one: call it as a Balancer.)
  BalancerAnswer pick(const BalancerRequest& request, const PickTerms& terms);
  /// The request went to its pick: counts it as in flight at both of its servers.
  virtual void on_sent(const BalancerPick& pick, const BalancerRequest& request = {});
  /// The answer's first token has come. Only with needs().first_tokens.
  virtual void on_first_token(const BalancerPick& /*pick*/, std::uint64_t /*id*/, SimTime /*now*/) {
  }
  /// A server (BalancerPick::server, or prefill_server) has answered; or failed before: a status
  /// worth a retry, no connection, or a broken one. True: it gets nothing for a while.
  virtual bool on_outcome(std::uint32_t /*server*/, bool /*success*/, SimTime /*now*/) {
    return false;
  }
  /// The response is finished (or failed).
  virtual void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome = {});

  std::span<const std::uint32_t> in_flight() const { return in_flight_; }
  std::uint64_t total_in_flight() const { return total_; }
  std::size_t size() const { return endpoints_.size(); }

 protected:
  /// True when endpoint i serves `adapter` ("" is served by all) and is offered.
  bool serves(std::uint32_t i, std::string_view adapter) const;
  const std::vector<BalancerEndpoint>& endpoints() const { return endpoints_; }
  BalancerPick pick_of(std::uint32_t i) const { return {.endpoint = i, .server = server_of_[i]}; }
  /// The pick of endpoint `decode`, for which `prefill` computes the prompt.
  BalancerPick pick_of(std::uint32_t prefill, std::uint32_t decode) const;
  /// The index of a server now; nothing when it left.
  std::optional<std::uint32_t> index_of(std::uint32_t server) const;

  // ---- The terms of the decision that is being made. Policies choose among what is offered, and
  // ---- settle() their choice before they remember it.

  const PickTerms& terms() const { return terms_; }
  bool restricted() const { return !offered_.empty(); }
  bool offered(std::uint32_t i) const { return offered_.empty() || offered_[i]; }
  /// The members of a list that may be chosen. Valid until the decision is made.
  const std::vector<std::uint32_t>& offered(const std::vector<std::uint32_t>& list) const;
  /// The endpoint that gets the request where the rules chose `i`.
  std::uint32_t settle(std::uint32_t i) const { return terms_.forced.value_or(i); }

 private:
  std::uint32_t& load_of(std::uint32_t server);

  std::vector<BalancerEndpoint> endpoints_;
  std::vector<std::uint32_t> in_flight_;  // By index into endpoints_.
  std::vector<std::uint32_t> server_of_;  // Index -> server.
  std::vector<std::uint32_t> index_of_;   // Server -> index, or kGone.
  std::vector<std::uint32_t> gone_load_;  // Server -> in flight while it is gone.
  std::map<std::string, std::uint32_t, std::less<>> servers_;  // Endpoints that are there.
  std::uint64_t total_ = 0;
  PickTerms terms_;
  std::vector<bool> offered_;  // By endpoint; empty = all are.
  mutable std::map<const void*, std::vector<std::uint32_t>> offered_lists_;  // By whole list.
};

}  // namespace routesim::policies
