#include "sim/router/decision_reporter.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/rng.h"

namespace routesim::sim {

namespace {

/// Replaces the endpoint of a routed decision.
void redirect(policies::Decision& decision, policies::EndpointRow row) {
  if (decision.prefill.valid() && decision.prefill.value() == row) decision.prefill = EndpointId();
  decision.primary = EndpointId(row);
  decision.targets = {row};
  if (decision.primary_profile >= 0)
    decision.profiles[static_cast<std::size_t>(decision.primary_profile)].targets = {row};
}

}  // namespace

DecisionReporter::DecisionReporter(DecisionProbe& probe, RouterKeyOptions key_options,
                                   const RunPlan& plan, const Endpoints& endpoints,
                                   const std::vector<std::unique_ptr<Replica>>& replicas,
                                   const Scraper* scraper)
    : probe_(probe),
      key_options_(std::move(key_options)),
      plan_(plan),
      endpoints_(endpoints),
      replicas_(replicas),
      scraper_(scraper) {}

void DecisionReporter::force(policies::Decision& decision,
                             const workloads::Request& request) const {
  const std::int64_t row = probe_.forced_row(request);
  if (row >= 0 && row < endpoints_.rows())
    redirect(decision, static_cast<policies::EndpointRow>(row));
}

void DecisionReporter::force(policies::BalancerPick& pick,
                             const workloads::Request& request) const {
  const std::int64_t row = probe_.forced_row(request);
  if (row < 0 || row >= endpoints_.rows()) return;
  // The set of servers never changes during a run, so servers are numbered as endpoints are.
  pick.endpoint = static_cast<std::uint32_t>(row);
  pick.server = pick.endpoint;
}

void DecisionReporter::find_cached(std::uint32_t row, const DecisionSubject& subject,
                                   EndpointFacts& f) const {
  CachedPrefix hits;
  for (std::size_t i = 0; i < endpoints_.ranks(row); ++i) {
    const EndpointHome& home = endpoints_[endpoints_.first(row) + i];
    const BatchScheduler& scheduler = replicas_[home.replica]->scheduler(home.rank);
    const KvCache& kv = scheduler.kv();
    const std::span<const BlockKey> keys = subject.keys.of(kv.block_size()).engine;
    const std::int64_t in_gpu = kv.lookup(keys, hits);
    const std::int64_t blocks = scheduler.held_blocks(keys, in_gpu);
    // vLLM computes at least the last token.
    const std::int64_t usable = (subject.request.prompt->tokens - 1) / kv.block_size();
    const std::int64_t cached = std::min(blocks, usable) * kv.block_size();
    if (cached <= f.cached_tokens) continue;
    f.cached_tokens = cached;
    f.tier_tokens = std::max<std::int64_t>(0, cached - in_gpu * kv.block_size());
  }
}

EndpointFacts DecisionReporter::facts(std::uint32_t row, const DecisionSubject& subject) const {
  const policies::EndpointTable& table = subject.table;
  EndpointFacts f;
  f.name = endpoints_[endpoints_.first(row)].name;
  f.is_known = std::ranges::find(table.candidates(), row) != table.candidates().end();
  if (table.has_metrics(row)) {
    f.scraped = true;
    f.scraped_at = table.updated()[row];
    f.known_waiting = table.waiting()[row];
    f.known_running = table.running()[row];
    f.known_kv_usage = table.kv_usage()[row];
  }
  const std::size_t ranks = endpoints_.ranks(row);
  for (std::size_t i = 0; i < ranks; ++i) {
    const EndpointHome& home = endpoints_[endpoints_.first(row) + i];
    replicas_[home.replica]->advance_to(subject.now);
    const Gauges g = replicas_[home.replica]->true_gauges(home.rank);
    const auto usable = static_cast<double>(plan_.pools[home.pool].rules.num_gpu_blocks - 1);
    f.waiting += static_cast<double>(g.waiting);
    f.running += static_cast<double>(g.running);
    f.kv_usage += (1.0 - static_cast<double>(g.free_blocks) / usable) / static_cast<double>(ranks);
    f.adapters.add(g.adapters);
  }
  find_cached(row, subject, f);
  return f;
}

DecisionRecord DecisionReporter::before(const DecisionSubject& subject) const {
  DecisionRecord record;
  record.request = subject.request.id.value();
  record.now = subject.now;
  record.prompt_tokens = subject.request.prompt->tokens;
  record.scored = subject.scheduler != nullptr;
  for (std::uint32_t row = 0; row < endpoints_.rows(); ++row)
    record.endpoints.push_back(facts(row, subject));
  record.totals.assign(endpoints_.rows(), std::numeric_limits<double>::quiet_NaN());
  if (!record.scored) return record;
  subject.scheduler->advance(subject.now);
  record.tier_hits = subject.scheduler->tier_hits(subject.view(), subject.table);
  const policies::Decision decision =
      subject.scheduler->explain(subject.view(), subject.table, subject.now, record.seen);
  if (decision.primary_profile < 0) return record;
  const std::string& primary =
      subject.scheduler->profile_names()[static_cast<std::size_t>(decision.primary_profile)];
  for (const policies::ProfileExplanation& profile : record.seen.profiles) {
    if (profile.profile != primary) continue;
    for (std::size_t i = 0; i < profile.scored.size() && i < profile.totals.size(); ++i)
      record.totals[profile.scored[i]] = profile.totals[i];
  }
  return record;
}

// The same configuration with the truth, as far as GPU memory goes. The prompt gets keys of its
// own, which every index is told about exactly where the prompt's blocks really are.
void DecisionReporter::explain_omniscient(const DecisionSubject& subject,
                                          DecisionRecord& record) const {
  const PromptKeys& keys = subject.keys;
  policies::Scheduler& scheduler = *subject.scheduler;
  policies::EndpointTable truth = subject.table;
  std::vector<std::uint64_t> precise;
  std::vector<std::uint64_t> approximate;
  for (std::size_t i = 0; i < keys.request.size(); ++i)
    precise.push_back(mix64(0x07ac1e, keys.request[i]));
  for (std::size_t i = 0; i < keys.approx.size(); ++i)
    approximate.push_back(mix64(0x07ac1e, keys.approx[i]));
  const auto held = [](const std::vector<std::uint64_t>& all, std::int64_t tokens,
                       std::int64_t block) {
    const auto blocks = static_cast<std::size_t>(std::max<std::int64_t>(tokens, 0) / block);
    return std::span<const std::uint64_t>(all).first(std::min(blocks, all.size()));
  };
  const RouterKeyOptions& options = key_options_;
  for (std::uint32_t row = 0; row < endpoints_.rows(); ++row) {
    const EndpointFacts& f = record.endpoints[row];
    truth.set_metrics(EndpointId(row), f.waiting, f.running, f.kv_usage, subject.now);
    if (scraper_ != nullptr) scraper_->write_adapters(row, f.adapters, truth);
    if (scheduler.precise_index() != nullptr && options.precise) {
      const auto known = held(precise, f.cached_tokens - f.tier_tokens,
                              static_cast<std::int64_t>(options.precise->block_size()));
      if (!known.empty())
        scheduler.precise_index()->stored(EndpointId(scheduler.index_holder(subject.table, row)),
                                          policies::kGpuTier, 0, known, known);
    }
    if (scheduler.approx_index() != nullptr && options.approx_block > 0) {
      const auto known = held(approximate, f.cached_tokens, options.approx_block);
      if (!known.empty()) scheduler.approx_index()->add(EndpointId(row), known);
    }
  }
  policies::RequestView v = subject.view();
  v.block_keys = precise;
  v.approx_hashes = approximate;
  record.omniscient_decision = scheduler.explain(v, truth, subject.now, record.omniscient);
}

void DecisionReporter::after(const DecisionSubject& subject, const policies::Scratch& scratch,
                             const Route& route, DecisionRecord& record) const {
  record.routed = route.routed;
  record.instance = route.instance;
  if (route.routed) record.picked = endpoints_.row_of(route.endpoint.value());
  if (record.scored) {
    for (std::uint32_t row = 0; row < endpoints_.rows() && route.routed; ++row)
      record.endpoints[row].predicted_tokens =
          subject.scheduler->predicted_hit_tokens(scratch, EndpointId(row));
    if (probe_.wants_omniscient()) explain_omniscient(subject, record);
  }
  probe_.on_decision(record);
}

}  // namespace routesim::sim
