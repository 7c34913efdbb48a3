#include "sim/router/decision_probe.h"

#include <algorithm>
#include <limits>

#include "sim/router/router.h"

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

void Router::force(policies::Decision& decision, const workloads::Request& request) {
  if (probe_ == nullptr) return;
  const std::int64_t row = probe_->forced_row(request);
  if (row >= 0 && row < std::ssize(rows_))
    redirect(decision, static_cast<policies::EndpointRow>(row));
}

void Router::force(policies::BalancerPick& pick, const workloads::Request& request) {
  if (probe_ == nullptr) return;
  const std::int64_t row = probe_->forced_row(request);
  if (row < 0 || row >= std::ssize(rows_)) return;
  // The set of servers never changes during a run, so servers are numbered as endpoints are.
  pick.endpoint = static_cast<std::uint32_t>(row);
  pick.server = pick.endpoint;
}

std::int64_t Router::cached_tokens(std::uint32_t row, const workloads::Request& request,
                                   const PromptKeys& keys) const {
  CachedPrefix hits;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < rank_count(row); ++i) {
    const EndpointHome& home = endpoints_[rows_[row] + i];
    const KvCache& kv = replicas_[home.replica]->scheduler(home.rank).kv();
    const std::int64_t blocks = kv.lookup(keys.engine, hits);
    // vLLM computes at least the last token.
    const std::int64_t usable = (request.prompt->tokens - 1) / kv.block_size();
    most = std::max(most, std::min(blocks, usable) * kv.block_size());
  }
  return most;
}

EndpointFacts Router::facts(std::uint32_t row, const workloads::Request& request,
                            const PromptKeys& keys, SimTime now) {
  EndpointFacts f;
  f.name = endpoints_[rows_[row]].name;
  if (reads_metrics_ && table_.has_metrics(row)) {
    f.scraped = true;
    f.scraped_at = table_.updated()[row];
    f.known_waiting = table_.waiting()[row];
    f.known_running = table_.running()[row];
    f.known_kv_usage = table_.kv_usage()[row];
  }
  const std::size_t ranks = rank_count(row);
  for (std::size_t i = 0; i < ranks; ++i) {
    const EndpointHome& home = endpoints_[rows_[row] + i];
    replicas_[home.replica]->advance_to(now);
    const Gauges g = replicas_[home.replica]->gauges(home.rank);
    const auto usable = static_cast<double>(plan_.pools[home.pool].rules.num_gpu_blocks - 1);
    f.waiting += static_cast<double>(g.waiting);
    f.running += static_cast<double>(g.running);
    f.kv_usage += (1.0 - static_cast<double>(g.free_blocks) / usable) / static_cast<double>(ranks);
    f.adapters.add(g.adapters);
  }
  f.cached_tokens = cached_tokens(row, request, keys);
  return f;
}

// Before the decision is made: making it changes what the indexes say.
void Router::record_before(Instance& in, const workloads::Request& request, const PromptKeys& keys,
                           SimTime now, DecisionRecord& record) {
  record.request = request.id.value();
  record.now = now;
  record.prompt_tokens = request.prompt->tokens;
  record.scored = in.scheduler != nullptr;
  for (std::uint32_t row = 0; row < rows_.size(); ++row)
    record.endpoints.push_back(facts(row, request, keys, now));
  record.totals.assign(rows_.size(), std::numeric_limits<double>::quiet_NaN());
  if (!record.scored) return;
  in.scheduler->advance(now);
  const policies::Decision decision =
      in.scheduler->explain(view(request, keys), table_, now, record.seen);
  if (decision.primary_profile < 0) return;
  const std::string& primary =
      in.scheduler->profile_names()[static_cast<std::size_t>(decision.primary_profile)];
  for (const policies::ProfileExplanation& profile : record.seen.profiles) {
    if (profile.profile != primary) continue;
    for (std::size_t i = 0; i < profile.scored.size() && i < profile.totals.size(); ++i)
      record.totals[profile.scored[i]] = profile.totals[i];
  }
}

// The same configuration with the truth. The prompt gets keys of its own, which every index is told
// about exactly where the prompt's blocks really are.
void Router::explain_omniscient(Instance& in, const workloads::Request& request,
                                const PromptKeys& keys, SimTime now, DecisionRecord& record) {
  policies::EndpointTable truth = table_;
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
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    const EndpointFacts& f = record.endpoints[row];
    truth.set_metrics(EndpointId(row), f.waiting, f.running, f.kv_usage, now);
    if (reads_adapters_) tell_adapters(row, f.adapters, truth);
    if (in.scheduler->precise_index() != nullptr && options.precise) {
      const auto known =
          held(precise, f.cached_tokens, static_cast<std::int64_t>(options.precise->block_size()));
      if (!known.empty())
        in.scheduler->precise_index()->stored(EndpointId(holders_[row]), policies::kGpuTier, 0,
                                              known, known);
    }
    if (in.scheduler->approx_index() != nullptr && options.approx_block > 0) {
      const auto known = held(approximate, f.cached_tokens, options.approx_block);
      if (!known.empty()) in.scheduler->approx_index()->add(EndpointId(row), known);
    }
  }
  policies::RequestView v = view(request, keys);
  v.block_keys = precise;
  v.approx_hashes = approximate;
  record.omniscient_decision = in.scheduler->explain(v, truth, now, record.omniscient);
}

void Router::report_decision(Instance& in, const workloads::Request& request,
                             const PromptKeys& keys, SimTime now, const Route& route,
                             DecisionRecord& record) {
  record.routed = route.routed;
  record.instance = route.instance;
  if (route.routed) record.picked = row_of_[route.endpoint.value()];
  if (record.scored) {
    for (std::uint32_t row = 0; row < rows_.size() && route.routed; ++row)
      record.endpoints[row].predicted_tokens =
          in.scheduler->predicted_hit_tokens(in.scratch, EndpointId(row));
    if (probe_->wants_omniscient()) explain_omniscient(in, request, keys, now, record);
  }
  probe_->on_decision(record);
}

}  // namespace routesim::sim
