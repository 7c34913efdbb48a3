#include "tools/study/explain/hit_study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "sim/engine/endpoints.h"
#include "sim/plan/resolve.h"
#include "sim/router/decision_probe.h"
#include "sim/router/route.h"
#include "tools/results/described_json.h"
#include "tools/results/statistics.h"
#include "tools/results/text_table.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

namespace {

/// How long a prompt takes from token `from` to its end, alone in every step.
double prefill_s(const sim::ResolvedPool& pool, std::int64_t from, std::int64_t end) {
  std::int64_t ticks = 0;
  // vLLM computes at least the last token.
  for (from = std::min(from, end - 1); from < end;) {
    const std::int64_t n = std::min(end - from, pool.rules.max_num_batched_tokens);
    const std::int64_t to = from + n;
    ticks += pool.latency->step_ticks({.prefill_requests = 1,
                                       .prefill_tokens = n,
                                       .prefill_context = to,
                                       .prefill_pairs = to * to - from * from});
    from = to;
  }
  return static_cast<double>(ticks) / (1e9 * models::kTicksPerNanosecond);
}

struct Tier {
  std::string_view key, title;
  TierShare TierRequest::*share;
};
constexpr std::array<Tier, 3> kTiers = {{{"hbm", "GPU memory", &TierRequest::hbm},
                                         {"host", "host memory", &TierRequest::host},
                                         {"pulled", "other servers", &TierRequest::pulled}}};

std::string expected_text(const TierRequest& r) {
  if (r.expected_tokens < 0) return "-";
  const std::string text = comma_list(r.expected, [](const auto& tier) {
    return printable(tier.first) + " " + std::to_string(tier.second);
  });
  return text.empty() ? std::to_string(r.expected_tokens) : text;
}

}  // namespace

void TierShare::add(const TierShare& o) {
  requests += o.requests;
  tokens += o.tokens;
  wait_s += o.wait_s;
  recompute_s += o.recompute_s;
}

void TierStudy::on_start(const sim::RunView& view) { view_ = &view; }

void TierStudy::on_decision(const sim::DecisionRecord& record) {
  if (!record.routed) return;
  if (row_of_.empty()) {
    std::uint32_t rows = 0;
    for (std::uint32_t e = 0; e < view_->endpoints.size(); ++e) {
      const std::uint32_t server = view_->endpoints[e].server;
      row_of_.push_back(server == e ? rows++ : row_of_[server]);
    }
  }
  Expected& e = expected_[record.request];
  for (const sim::EndpointFacts& f : record.endpoints) e.tokens.push_back(f.predicted_tokens);
  e.tiers = record.tier_hits;
}

void TierStudy::on_routed(std::int64_t request, const sim::Route& route) {
  const auto found = expected_.find(request);
  if (found == expected_.end()) return;
  const EndpointId computes = route.prefill.value_or(route.endpoint);
  const sim::EndpointHome& home = view_->endpoints[computes.value()];
  Open open{.computes = computes.value()};
  TierRequest& r = open.request;
  r.id = request;
  r.server = home.name;
  const std::uint32_t row = row_of_[computes.value()];
  r.expected_tokens = found->second.tokens[row];
  for (const policies::TierHits& hits : found->second.tiers)
    if (hits.endpoint == row) r.expected.emplace_back(hits.tier, hits.tokens);
  if (route.pull_source) r.pull_source = view_->endpoints[route.pull_source->value()].name;
  expected_.erase(found);
  if (view_->plan.pools[home.pool].rules.tiers.in_use()) open_[request] = std::move(open);
}

void TierStudy::on_done(const sim::RequestRecord& record) {
  const auto found = open_.find(record.id);
  if (found == open_.end()) return;
  if (record.outcome == workloads::Outcome::kSuccess) {
    TierRequest& r = found->second.request;
    const sim::TierHit& hit = record.tier;
    const sim::ResolvedPool& pool =
        view_->plan.pools[view_->endpoints[found->second.computes].pool];
    r.prompt_tokens = record.prompt_tokens;
    r.hbm.tokens = hit.hbm_tokens;
    r.host.tokens = hit.loaded_tokens - hit.pulled_tokens;
    r.pulled.tokens = hit.pulled_tokens;
    r.host.wait_s = hit.load_wait.to_seconds();
    r.pulled.wait_s = hit.pull_wait.to_seconds();
    double left = prefill_s(pool, 0, r.prompt_tokens);
    std::int64_t cached = 0;
    for (const Tier& tier : kTiers) {
      TierShare& share = r.*tier.share;
      if (share.tokens == 0) continue;
      share.requests = 1;
      cached += share.tokens;
      const double rest = prefill_s(pool, cached, r.prompt_tokens);
      share.recompute_s = left - rest;
      left = rest;
    }
    requests_.push_back(std::move(r));
  }
  open_.erase(found);
}

namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

std::size_t count_distinct(const std::vector<std::uint32_t>& keys) {
  std::uint32_t most = 0;
  for (const std::uint32_t key : keys) most = std::max(most, key);
  return keys.empty() ? 0 : std::size_t{most} + 1;
}

/// Per position of the stream: the next request that touches the same key, or kNever.
std::vector<std::uint32_t> next_uses(const std::vector<std::uint32_t>& keys,
                                     const std::vector<StreamRequest>& requests) {
  std::vector<std::uint32_t> next(keys.size(), kNever);
  std::vector<std::uint32_t> seen(count_distinct(keys), kNever);
  for (std::size_t r = requests.size(); r-- > 0;) {
    for (std::size_t i = requests[r].begin; i < requests[r].end; ++i) next[i] = seen[keys[i]];
    for (std::size_t i = requests[r].begin; i < requests[r].end; ++i)
      seen[keys[i]] = static_cast<std::uint32_t>(r);
  }
  return next;
}

}  // namespace

// A prompt's blocks are touched from the front, so a block is needed again no later than those
// behind it: evicting the block needed last, the deepest one among equals, never leaves a gap.
std::int64_t belady_hits(const std::vector<std::uint32_t>& keys,
                         const std::vector<StreamRequest>& requests, std::int64_t capacity) {
  const std::vector<std::uint32_t> next = next_uses(keys, requests);
  struct Place {
    bool held = false;
    std::uint32_t next = 0, depth = 0;
  };
  std::vector<Place> places(count_distinct(keys));
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> held;  // next, depth, key
  std::int64_t hits = 0;
  for (const StreamRequest& request : requests) {
    for (std::size_t i = request.begin; i < request.hit_end && places[keys[i]].held; ++i) ++hits;
    for (std::size_t i = request.begin; i < request.end; ++i) {
      Place& place = places[keys[i]];
      if (place.held) held.erase({place.next, place.depth, keys[i]});
      place = {.held = next[i] != kNever,
               .next = next[i],
               .depth = static_cast<std::uint32_t>(i - request.begin)};
      if (place.held) held.insert({place.next, place.depth, keys[i]});
    }
    while (std::ssize(held) > capacity) {
      const auto last = std::prev(held.end());
      places[std::get<2>(*last)].held = false;
      held.erase(last);
    }
  }
  return hits;
}

std::int64_t infinite_hits(const std::vector<std::uint32_t>& keys,
                           const std::vector<StreamRequest>& requests) {
  std::vector<std::int64_t> touched(count_distinct(keys), 0);
  std::vector<std::int64_t> can_hit(count_distinct(keys), 0);
  for (const StreamRequest& request : requests)
    for (std::size_t i = request.begin; i < request.end; ++i) {
      ++touched[keys[i]];
      if (i < request.hit_end) ++can_hit[keys[i]];
    }
  std::int64_t hits = 0;
  // Somebody computes the block first; best is somebody who could not have hit it.
  for (std::size_t k = 0; k < touched.size(); ++k)
    if (touched[k] > 0) hits += std::min(can_hit[k], touched[k] - 1);
  return hits;
}

namespace {

/// The facts about one request when it was routed.
struct Routed {
  std::int64_t best = 0;       ///< Most cached tokens at any candidate.
  std::int64_t at_pick = 0;    ///< At the one picked.
  std::int64_t promised = -1;  ///< By the index, for the one picked.
  Loss loss = Loss::kNone;
  bool reached = false;  ///< A gateway may refuse what the router decided.
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

  void on_start(const sim::RunView& view) override {
    if (study_.tiers) study_.tiers->on_start(view);
  }
  bool wants(const workloads::Request&) override { return true; }
  void on_decision(const sim::DecisionRecord& r) override {
    if (!r.routed) return;
    if (study_.tiers) study_.tiers->on_decision(r);
    const std::uint32_t best = best_row(r);
    open_[r.request] = {.best = r.endpoints[best].cached_tokens,
                        .at_pick = r.endpoints[r.picked].cached_tokens,
                        .promised = r.endpoints[r.picked].predicted_tokens,
                        .loss = loss_of(r, best),
                        .reached = false};
  }
  void on_routed(const workloads::Request& request, const sim::Route& route, SimTime) override {
    if (study_.tiers) study_.tiers->on_routed(request.id.value(), route);
    if (const auto found = open_.find(request.id.value()); found != open_.end())
      found->second.reached = true;
    StreamRequest keyed{.begin = stream_.size()};
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
    if (study_.tiers) study_.tiers->on_done(record);
    const auto found = open_.find(record.id);
    if (found == open_.end()) return;
    if (found->second.reached) account(found->second, record.cached_tokens);
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
    sim::EngineKeys keys;
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
  std::vector<StreamRequest> requests_;
};

/// KV blocks of `block_size` tokens that all engine cores have together, those in host memory
/// included.
std::int64_t fleet_blocks(const sim::RunPlan& plan, std::int64_t block_size) {
  std::int64_t tokens = 0;
  for (const sim::ResolvedPool& pool : plan.pools)
    tokens += pool.config.replicas * pool.config.data_parallel *
              (pool.rules.num_gpu_blocks - 1 +
               pool.rules.tiers.cpu_chunks * pool.rules.tiers.chunk_blocks) *
              pool.rules.block_size;
  return tokens / block_size;
}

}  // namespace

std::optional<HitStudy> study_hits(const sim::RunPlan& plan, Diagnostics& diagnostics) {
  HitStudy study;
  study.scenario = plan.scenario.name;
  study.variant = plan.scenario.variant;
  study.seed = plan.scenario.seed;
  if (std::ranges::any_of(plan.pools,
                          [](const sim::ResolvedPool& pool) { return pool.rules.tiers.in_use(); }))
    study.tiers.emplace();
  std::int64_t block_size = plan.pools.front().rules.block_size;
  for (const sim::ResolvedPool& pool : plan.pools)
    block_size = std::min(block_size, pool.rules.block_size);
  HitWatcher watcher(block_size, study);
  if (!simulate(plan, {.seed = plan.scenario.seed, .probe = &watcher, .observers = {&watcher}},
                diagnostics))
    return std::nullopt;
  watcher.finish(fleet_blocks(plan, block_size));
  return study;
}

namespace {

/// A row of tokens: its key in JSON, its title in the table.
template <class T>
struct TokenRow {
  std::string_view key, title;
  std::int64_t T::*tokens;
};
constexpr std::array<TokenRow<HitLadder>, 5> kRungs = {
    {{"infinite_cache", "infinite cache", &HitLadder::infinite},
     {"one_cache", "one cache of the fleet's size", &HitLadder::one_cache},
     {"best_routing", "best endpoint for each request", &HitLadder::best_routing},
     {"predicted", "predicted for the pick", &HitLadder::predicted},
     {"delivered", "delivered by the engines", &HitLadder::delivered}}};

constexpr std::array<TokenRow<HitLosses>, 7> kCauses = {
    {{"capacity", "capacity: no cache of this size could keep it", &HitLosses::capacity},
     {"split", "split: copies and evictions in separate caches", &HitLosses::split},
     {"stale_index", "stale index: the router did not see it", &HitLosses::stale},
     {"load_spread", "load spread: the router knew and preferred another", &HitLosses::load},
     {"tie", "tie: an endpoint that held more scored no less", &HitLosses::tie},
     {"blind", "blind: nothing in the router looks at caches", &HitLosses::blind},
     {"evicted_waiting", "evicted between routing and the engine", &HitLosses::waiting}}};

/// A table of tiers, and one of the requests that waited longest.
std::string render_tiers_text(const TierStudy& study) {
  constexpr std::size_t kShown = 20;
  std::int64_t prompt = 0;
  for (const TierRequest& r : study.requests()) prompt += r.prompt_tokens;
  TextTable tiers(1);
  tiers.add_row({"hits by tier", "requests", "tokens", "of the prompt, %", "wait, s each",
                 "computing instead, s each"});
  for (const Tier& tier : kTiers) {
    TierShare all;
    for (const TierRequest& r : study.requests()) all.add(r.*tier.share);
    const double n = static_cast<double>(std::max<std::int64_t>(1, all.requests));
    tiers.add_row({std::string(tier.title), std::to_string(all.requests),
                   std::to_string(all.tokens), fixed_text(100 * sim::share(all.tokens, prompt), 2),
                   fixed_text(all.wait_s / n, 3), fixed_text(all.recompute_s / n, 3)});
  }
  std::vector<const TierRequest*> slow;
  for (const TierRequest& r : study.requests())
    if (r.host.tokens + r.pulled.tokens > 0) slow.push_back(&r);
  const auto wait = [](const TierRequest& r) { return r.host.wait_s + r.pulled.wait_s; };
  std::ranges::stable_sort(
      slow, [&](const TierRequest* a, const TierRequest* b) { return wait(*a) > wait(*b); });
  const std::size_t shown = std::min(slow.size(), kShown);
  TextTable table(2);
  table.add_row({"request", "server", "prompt", "GPU", "host", "pulled", "from", "router expected",
                 "wait, s", "computing instead, s"});
  for (std::size_t i = 0; i < shown; ++i) {
    const TierRequest& r = *slow[i];
    table.add_row({std::to_string(r.id), printable(r.server), std::to_string(r.prompt_tokens),
                   std::to_string(r.hbm.tokens), std::to_string(r.host.tokens),
                   std::to_string(r.pulled.tokens),
                   r.pulled.tokens > 0 ? printable(r.pull_source) : "-", expected_text(r),
                   fixed_text(wait(r), 3),
                   fixed_text(r.host.recompute_s + r.pulled.recompute_s, 3)});
  }
  return tiers.str() + "\nthe " + std::to_string(shown) + " of " + std::to_string(slow.size()) +
         " requests with hits beyond GPU memory that waited longest (--output json has all):\n" +
         table.str();
}

/// Writes the members `tiers` and `tier_requests`.
void write_tier_study(JsonWriter& json, const TierStudy& study) {
  const auto write = [&json](const Tier& tier, const TierShare& share) {
    json.key(tier.key).begin_object().member("tokens", share.tokens);
    json.member("wait_s", share.wait_s).member("recompute_s", share.recompute_s);
  };
  json.key("tiers").begin_object();
  for (const Tier& tier : kTiers) {
    TierShare all;
    for (const TierRequest& r : study.requests()) all.add(r.*tier.share);
    write(tier, all);
    json.member("requests", all.requests).end_object();
  }
  json.end_object().key("tier_requests").begin_array();
  for (const TierRequest& r : study.requests()) {
    json.begin_object().member("request", r.id).member("server", r.server);
    json.member("prompt_tokens", r.prompt_tokens);
    for (const Tier& tier : kTiers) {
      write(tier, r.*tier.share);
      json.end_object();
    }
    if (!r.pull_source.empty()) json.member("pull_source", r.pull_source);
    if (r.expected_tokens >= 0) json.member("expected_tokens", r.expected_tokens);
    if (!r.expected.empty()) {
      json.key("expected").begin_object();
      for (const auto& [tier, tokens] : r.expected) json.member(tier, tokens);
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string render_hits_text(const HitStudy& study) {
  const HitLadder& l = study.ladder;
  std::string out = "variant " + printable(study.variant) + ", " + std::to_string(study.requests) +
                    " requests, " + std::to_string(l.prompt) + " prompt tokens\n\n";
  TextTable ladder(1);
  ladder.add_row({"hit-rate ladder", "tokens", "of the prompt, %", "lost, %"});
  std::int64_t above = l.infinite;
  for (const auto& rung : kRungs) {
    const std::int64_t tokens = l.*rung.tokens;
    ladder.add_row({std::string(rung.title), std::to_string(tokens),
                    fixed_text(100 * sim::share(tokens, l.prompt), 2),
                    fixed_text(100 * sim::share(above - tokens, l.prompt), 2)});
    above = tokens;
  }
  out += ladder.str() + "\n";
  TextTable causes(1);
  const std::int64_t lost = l.infinite - l.delivered;
  causes.add_row({"where lost hits went", "tokens", "of the lost, %"});
  for (const auto& cause : kCauses)
    causes.add_row({std::string(cause.title), std::to_string(study.losses.*cause.tokens),
                    fixed_text(100 * sim::share(study.losses.*cause.tokens, lost), 1)});
  causes.add_row({"all", std::to_string(lost), lost > 0 ? "100.0" : "0.0"});
  out += causes.str();
  out += "\nthe index promised " + std::to_string(study.promised_in_vain) +
         " tokens that were not there, and missed " + std::to_string(study.not_promised) +
         " that were\n";
  if (study.tiers) out += "\n" + render_tiers_text(*study.tiers);
  return out;
}

std::string render_hits_json(const HitStudy& study) {
  JsonWriter json;
  json.begin_object().member("scenario", study.scenario).member("variant", study.variant);
  json.member("seed", study.seed).member("requests", study.requests);
  json.member("prompt_tokens", study.ladder.prompt).key("ladder").begin_object();
  for (const auto& rung : kRungs) json.member(rung.key, study.ladder.*rung.tokens);
  json.end_object().key("lost").begin_object();
  for (const auto& cause : kCauses) json.member(cause.key, study.losses.*cause.tokens);
  json.end_object().member("promised_in_vain", study.promised_in_vain);
  json.member("not_promised", study.not_promised);
  if (study.tiers) write_tier_study(json, *study.tiers);
  json.end_object();
  return json.str() + "\n";
}

}  // namespace routesim::tools
