// The ceiling: a router that knows the true state of every engine, the true content of every cache
// and the true length of every answer, and what a decision costs by that knowledge.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/engine/endpoints.h"
#include "sim/engine/replica.h"
#include "sim/kv/prompt_keys.h"
#include "sim/plan/resolve.h"
#include "workloads/request.h"

namespace routesim::sim {

/// Prices decisions in client-seconds: the time that this request takes at a server, and the time
/// by which it delays the others there. Step times come from the pools' own latency models, cache
/// content from the engines. It looks one decision ahead and knows no requests to come, so it is a
/// very good router and no proven optimum.
///
/// A price adds, with c the seconds to compute one prompt token and d the requests that decode:
///   tokens queued before it * c
///   + its own that are not cached * c * (1 + d) * (1 + e * h / (1 - h)), with h the share of hits
///     and e the share of its blocks that take the place of blocks which lookups could find
///   + its answer's tokens * the step time with one more of them
///   + the same tokens * the step's growth * d, which the others wait
///   + the wait for KV blocks where demand exceeds what the server has.
class Omniscient {
 public:
  /// All arguments outlive this.
  Omniscient(const RunPlan& plan, const Endpoints& endpoints,
             const std::vector<std::unique_ptr<Replica>>& replicas);

  struct Choice {
    std::uint32_t row = 0;
    std::optional<std::uint32_t> prefill;
  };
  /// The cheapest servers; the first of equals. Some pool can decode.
  Choice best(const workloads::Request& request, const PromptKeys& keys, SimTime now);
  /// The price of a choice minus that of the best one, in seconds; at least 0.
  double regret_s(const Choice& choice, const workloads::Request& request, const PromptKeys& keys,
                  SimTime now);

  // Every routed request, whoever chose.
  void on_sent(const Choice& choice, const workloads::Request& request);
  void on_first_token(const workloads::Request& request);
  void on_completed(const workloads::Request& request);

 private:
  /// The facts known about a row's work.
  struct Work {
    double queued_tokens = 0;  ///< Prompt tokens to compute of requests without a first token.
    double decoding = 0;       ///< Requests with a first token.
    double context = 0;        ///< Their tokens, prompt and half of the answer.
    double kv_tokens = 0;      ///< Tokens all requests will hold, cached prefixes once.
  };
  struct Sent {
    Choice choice;
    double uncached = 0;  ///< Prompt tokens to compute; 0 from the first token on.
    double kv_tokens = 0;
    bool decodes = false;
  };
  double uncached_tokens(std::uint32_t row, const workloads::Request& request,
                         const PromptKeys& keys, SimTime now);
  static double evicted_share(const KvCache& kv, const workloads::Request& request,
                              std::int64_t found);
  double prefill_price(std::uint32_t row) const;
  /// Share of the prompt tokens so far that were cached where they were sent.
  double hit_share() const { return prompt_tokens_ > 0 ? hit_tokens_ / prompt_tokens_ : 0; }
  double decode_price(std::uint32_t row, const workloads::Request& request, bool pulls) const;
  /// Prices of all rows for the request, NaN where the role does not fit.
  void price_rows(const workloads::Request& request, const PromptKeys& keys, SimTime now);
  double seconds_per_token(std::uint32_t row) const;
  double step_s(std::uint32_t row, double requests, double context) const;
  std::optional<std::uint32_t> cheapest(const std::vector<double>& prices) const;

  const RunPlan& plan_;
  const Endpoints& endpoints_;
  const std::vector<std::unique_ptr<Replica>>& replicas_;
  bool disaggregated_ = false;
  std::vector<Work> work_;
  std::vector<double> per_token_;  ///< By row, seconds.
  std::vector<double> uncached_;   ///< By row, of the request that is priced.
  std::vector<double> evicted_;    ///< Share of its blocks that take the place of findable ones.
  double prompt_tokens_ = 0, hit_tokens_ = 0;
  std::vector<double> prefill_, decode_;
  std::unordered_map<std::int64_t, Sent> sent_;
};

}  // namespace routesim::sim
