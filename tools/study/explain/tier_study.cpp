#include "tools/study/explain/tier_study.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "sim/engine/endpoints.h"
#include "sim/plan/resolve.h"
#include "sim/router/route.h"
#include "tools/results/text_table.h"

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
  std::string text;
  for (const auto& [tier, tokens] : r.expected)
    text += (text.empty() ? "" : ", ") + printable(tier) + " " + std::to_string(tokens);
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
  Open open{.computes = computes.value(), .request = {}};
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
    tiers.add_row(
        {std::string(tier.title), std::to_string(all.requests), std::to_string(all.tokens),
         fixed_text(
             prompt > 0 ? 100 * static_cast<double>(all.tokens) / static_cast<double>(prompt) : 0,
             2),
         fixed_text(all.wait_s / n, 3), fixed_text(all.recompute_s / n, 3)});
  }
  std::vector<const TierRequest*> slow;
  for (const TierRequest& r : study.requests())
    if (r.host.tokens + r.pulled.tokens > 0) slow.push_back(&r);
  const auto wait = [](const TierRequest& r) { return r.host.wait_s + r.pulled.wait_s; };
  std::stable_sort(slow.begin(), slow.end(),
                   [&](const TierRequest* a, const TierRequest* b) { return wait(*a) > wait(*b); });
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

}  // namespace routesim::tools
