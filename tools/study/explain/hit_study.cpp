#include "tools/study/explain/hit_study.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "sim/router/decision_probe.h"
#include "sim/simulation.h"

namespace routesim::tools {

namespace {

/// What was known of one request when it was routed.
struct Routed {
  std::int64_t best = 0;       ///< Most cached tokens at any candidate.
  std::int64_t at_pick = 0;    ///< At the one picked.
  std::int64_t promised = -1;  ///< By the index, for the one picked.
  Loss loss = Loss::kNone;
};

/// The candidate that held most; of equals the one with the highest score.
std::uint32_t best_row(const sim::DecisionRecord& r) {
  std::uint32_t best = r.picked;
  for (std::uint32_t row = 0; row < r.endpoints.size(); ++row) {
    if (r.scored && !std::isfinite(r.totals[row])) continue;
    const std::int64_t more = r.endpoints[row].cached_tokens - r.endpoints[best].cached_tokens;
    if (more > 0 || (more == 0 && r.scored && r.totals[row] > r.totals[best])) best = row;
  }
  return best;
}

Loss loss_of(const sim::DecisionRecord& r, std::uint32_t best) {
  const sim::EndpointFacts& pick = r.endpoints[r.picked];
  const sim::EndpointFacts& other = r.endpoints[best];
  if (other.cached_tokens <= pick.cached_tokens) return Loss::kNone;
  if (!r.scored || pick.predicted_tokens < 0) return Loss::kBlind;
  // The index made the pick look no worse than the endpoint that really held more.
  if (other.predicted_tokens <= pick.predicted_tokens) return Loss::kStale;
  return r.totals[best] >= r.totals[r.picked] ? Loss::kTie : Loss::kLoad;
}

/// Sees every decision and every end.
class HitWatcher final : public sim::DecisionProbe, public sim::Observer {
 public:
  HitWatcher(std::int64_t block_size, HitStudy& study) : block_size_(block_size), study_(study) {}

  bool wants(const workloads::Request&) override { return true; }
  void on_decision(const sim::DecisionRecord& r) override {
    if (!r.routed) return;
    const std::uint32_t best = best_row(r);
    open_[r.request] = {.best = r.endpoints[best].cached_tokens,
                        .at_pick = r.endpoints[r.picked].cached_tokens,
                        .promised = r.endpoints[r.picked].predicted_tokens,
                        .loss = loss_of(r, best)};
  }
  void on_routed(const workloads::Request& request, const sim::Route&, SimTime) override {
    KeyedRequest keyed{.begin = stream_.size()};
    append_keys(*request.prompt);
    const auto prompt_end = stream_.size();
    keyed.hit_end =
        keyed.begin + static_cast<std::size_t>((request.prompt->tokens - 1) / block_size_);
    keyed.hit_end = std::min(keyed.hit_end, prompt_end);
    if (request.session != 0) {
      // A later turn's prompt can hit the answer of this one.
      stream_.resize(keyed.begin);
      workloads::Prompt whole = *request.prompt;
      whole.segments.push_back(
          {.content = request.output_content, .offset = 0, .length = request.output_tokens});
      whole.tokens += request.output_tokens;
      append_keys(whole);
    }
    keyed.end = stream_.size();
    requests_.push_back(keyed);
    study_.ladder.prompt += request.prompt->tokens;
    ++study_.requests;
  }
  void on_done(const sim::RequestRecord& record) override {
    const auto found = open_.find(record.id);
    if (found == open_.end()) return;
    account(found->second, record.cached_tokens);
    open_.erase(found);
  }
  void finish(std::int64_t capacity) {
    HitLadder& ladder = study_.ladder;
    ladder.infinite = infinite_hits(stream_, requests_) * block_size_;
    ladder.one_cache =
        std::max(belady_hits(stream_, requests_, capacity) * block_size_, ladder.best_routing);
    study_.losses.capacity = ladder.infinite - ladder.one_cache;
    study_.losses.split = ladder.one_cache - ladder.best_routing;
  }

 private:
  void append_keys(const workloads::Prompt& prompt) {
    sim::PromptKeys keys;
    sim::append_engine_keys(prompt, block_size_, keys);
    for (const sim::BlockKey key : keys.engine)
      stream_.push_back(
          numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second);
  }

  void account(const Routed& r, std::int64_t delivered) {
    const std::int64_t best = std::max(r.best, delivered);
    const std::int64_t held = std::max(r.at_pick, delivered);
    const std::int64_t promised = r.promised >= 0 ? r.promised : r.at_pick;
    study_.ladder.best_routing += best;
    study_.ladder.predicted += std::clamp(promised, delivered, best);
    study_.ladder.delivered += delivered;
    study_.losses.waiting += held - delivered;
    if (r.promised >= 0) {
      study_.promised_in_vain += std::max<std::int64_t>(0, r.promised - r.at_pick);
      study_.not_promised += std::max<std::int64_t>(0, r.at_pick - r.promised);
    }
    const std::int64_t lost = best - held;
    if (r.loss == Loss::kStale) study_.losses.stale += lost;
    if (r.loss == Loss::kLoad) study_.losses.load += lost;
    if (r.loss == Loss::kTie) study_.losses.tie += lost;
    if (r.loss == Loss::kBlind) study_.losses.blind += lost;
  }

  std::int64_t block_size_;
  HitStudy& study_;
  std::unordered_map<std::int64_t, Routed> open_;
  std::unordered_map<sim::BlockKey, std::uint32_t> numbers_;
  std::vector<std::uint32_t> stream_;
  std::vector<KeyedRequest> requests_;
};

/// KV blocks of all engine cores that take prompts.
std::int64_t fleet_blocks(const sim::RunPlan& plan) {
  std::int64_t blocks = 0;
  for (const sim::ResolvedPool& pool : plan.pools)
    blocks += pool.config.replicas * pool.config.data_parallel * (pool.rules.num_gpu_blocks - 1);
  return blocks;
}

}  // namespace

std::optional<HitStudy> study_hits(const sim::RunPlan& plan, Diagnostics& diagnostics) {
  HitStudy study;
  study.scenario = plan.scenario.name;
  study.variant = plan.scenario.variant;
  study.seed = plan.scenario.seed;
  HitWatcher watcher(plan.pools.front().rules.block_size, study);
  sim::Simulation simulation(
      plan, {.seed = plan.scenario.seed, .probe = &watcher, .observers = {&watcher}}, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  (void)simulation.run();
  watcher.finish(fleet_blocks(plan));
  return study;
}

}  // namespace routesim::tools
