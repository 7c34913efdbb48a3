#include "sim/router/omniscient.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace routesim::sim {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
/// No chain of replacements is longer than this says: 1 / (1 - 0.95) computations.
constexpr double kMostReuse = 0.95;
/// Over the time in which its answer grows.
double mean_context(const workloads::Request& request) {
  return static_cast<double>(request.prompt->tokens) +
         static_cast<double>(request.output_tokens) / 2;
}

constexpr double kSecondsPerTick = 1.0 / (1e9 * models::kTicksPerNanosecond);

}  // namespace

Omniscient::Omniscient(const RunPlan& plan, const Endpoints& endpoints,
                       const std::vector<std::unique_ptr<Replica>>& replicas)
    : plan_(plan),
      endpoints_(endpoints),
      replicas_(replicas),
      disaggregated_(plan.has_prefill()),
      work_(endpoints.rows()),
      uncached_(endpoints.rows(), 0),
      evicted_(endpoints.rows(), 1),
      prefill_(endpoints.rows(), kNone),
      decode_(endpoints.rows(), kNone) {
  for (std::uint32_t row = 0; row < endpoints.rows(); ++row)
    per_token_.push_back(seconds_per_token(row));
}

/// The time per token of a full step of prompt tokens, shared by the ranks of the row.
double Omniscient::seconds_per_token(std::uint32_t row) const {
  const ResolvedPool& pool = plan_.pools[endpoints_[endpoints_.first(row)].pool];
  const std::int64_t tokens = pool.rules.max_num_batched_tokens;
  const models::BatchShape shape{.prefill_requests = 1,
                                 .prefill_tokens = tokens,
                                 .prefill_context = tokens,
                                 .prefill_pairs = tokens * tokens};
  const auto ticks = static_cast<double>(pool.latency->step_ticks(shape));
  return ticks * kSecondsPerTick / static_cast<double>(tokens) /
         static_cast<double>(endpoints_.ranks(row) *
                             static_cast<std::size_t>(pool.rules.pipeline_stages));
}

double Omniscient::step_s(std::uint32_t row, double requests, double context) const {
  const ResolvedPool& pool = plan_.pools[endpoints_[endpoints_.first(row)].pool];
  const auto ranks = static_cast<double>(endpoints_.ranks(row) *
                                         static_cast<std::size_t>(pool.rules.pipeline_stages));
  models::BatchShape shape{
      .decode_requests = std::max<std::int64_t>(1, std::llround(requests / ranks)),
      .decode_context = std::llround(context / ranks)};
  shape.draft_tokens = pool.rules.speculation.tokens * shape.decode_requests;
  return static_cast<double>(pool.latency->step_ticks(shape)) * kSecondsPerTick /
         pool.rules.speculation.mean_length();
}

/// The share of the blocks a request still needs that are taken from findable ones, where it finds
/// `found`.
double Omniscient::evicted_share(const KvCache& kv, const workloads::Request& request,
                                 std::int64_t found) {
  const std::int64_t tokens = request.prompt->tokens + request.output_tokens;
  const std::int64_t needed = (tokens + kv.block_size() - 1) / kv.block_size() - found;
  if (needed <= 0) return 0;
  const std::int64_t clean = std::min(kv.blocks_before_known(needed), needed);
  return 1 - static_cast<double>(clean) / static_cast<double>(needed);
}

double Omniscient::uncached_tokens(std::uint32_t row, const workloads::Request& request,
                                   const PromptKeys& keys, SimTime now) {
  const std::int64_t prompt = request.prompt->tokens;
  std::int64_t most = 0;
  evicted_[row] = 1;
  CachedPrefix hits;
  for (std::size_t i = 0; i < endpoints_.ranks(row); ++i) {
    const EndpointHome& home = endpoints_[endpoints_.first(row) + i];
    replicas_[home.replica]->advance_to(now);
    const BatchScheduler& scheduler = replicas_[home.replica]->scheduler(home.rank);
    const std::span<const BlockKey> prompt_keys = keys.of(scheduler.kv().block_size()).engine;
    const std::int64_t in_gpu = scheduler.kv().lookup(prompt_keys, hits);
    const std::int64_t blocks = scheduler.held_blocks(prompt_keys, in_gpu);
    most = std::max(most, std::min(blocks * scheduler.kv().block_size(), prompt - 1));
    evicted_[row] = std::min(evicted_[row], evicted_share(scheduler.kv(), request, blocks));
  }
  return static_cast<double>(prompt - most);
}

double Omniscient::prefill_price(std::uint32_t row) const {
  const Work& work = work_[row];
  const double own = uncached_[row] * per_token_[row];
  const double queued = work.queued_tokens * per_token_[row];
  // Its chunks stretch the steps of those that decode. Blocks that it takes from the cache would
  // have been hit by others, whose computation takes the place of others, and so on.
  const double reused = std::min(hit_share(), kMostReuse);
  return queued + own * (1 + work.decoding) * (1 + evicted_[row] * reused / (1 - reused));
}

double Omniscient::decode_price(std::uint32_t row, const workloads::Request& request,
                                bool pulls) const {
  const Work& work = work_[row];
  const auto output = static_cast<double>(request.output_tokens);
  const auto prompt = static_cast<double>(request.prompt->tokens);
  const double now_step = work.decoding > 0 ? step_s(row, work.decoding, work.context) : 0;
  const double step = step_s(row, work.decoding + 1, work.context + mean_context(request));
  const double growth = std::max(0.0, step - now_step);
  double price = output * step + (work.decoding > 0 ? output * growth * work.decoding : 0);
  const ResolvedPool& pool = plan_.pools[endpoints_[endpoints_.first(row)].pool];
  const double capacity =
      static_cast<double>(pool.kv_cache_tokens) * static_cast<double>(endpoints_.ranks(row));
  const double demand = work.kv_tokens + output + (pulls ? prompt : uncached_[row]);
  // All that a server holds goes within about the time of one answer.
  if (demand > capacity) price += (demand - capacity) / capacity * output * step;
  return price;
}

void Omniscient::price_rows(const workloads::Request& request, const PromptKeys& keys,
                            SimTime now) {
  for (std::uint32_t row = 0; row < endpoints_.rows(); ++row) {
    const PoolRole role = plan_.pools[endpoints_[endpoints_.first(row)].pool].config.role;
    prefill_[row] = decode_[row] = kNone;
    const bool computes = role != PoolRole::kDecode;
    if (computes || !disaggregated_) uncached_[row] = uncached_tokens(row, request, keys, now);
    if (computes) prefill_[row] = prefill_price(row);
    if (role == PoolRole::kPrefill) continue;
    decode_[row] = decode_price(row, request, disaggregated_ && role == PoolRole::kDecode);
    if (!disaggregated_) decode_[row] += prefill_[row];
  }
}

std::optional<std::uint32_t> Omniscient::cheapest(const std::vector<double>& prices) const {
  std::optional<std::uint32_t> best;
  for (std::uint32_t row = 0; row < prices.size(); ++row)
    if (!std::isnan(prices[row]) && (!best || prices[row] < prices[*best])) best = row;
  return best;
}

Omniscient::Choice Omniscient::best(const workloads::Request& request, const PromptKeys& keys,
                                    SimTime now) {
  price_rows(request, keys, now);
  Choice choice{.row = cheapest(decode_).value_or(0), .prefill = {}};
  if (disaggregated_) choice.prefill = cheapest(prefill_);
  return choice;
}

double Omniscient::regret_s(const Choice& choice, const workloads::Request& request,
                            const PromptKeys& keys, SimTime now) {
  const Choice ideal = best(request, keys, now);
  double regret = decode_[choice.row] - decode_[ideal.row];
  if (ideal.prefill) {
    // Without a prefill server the decode server computes the prompt itself.
    const std::uint32_t computes = choice.prefill.value_or(choice.row);
    if (std::isnan(prefill_[computes])) {
      uncached_[computes] = uncached_tokens(computes, request, keys, now);
      prefill_[computes] = prefill_price(computes);
    }
    regret += prefill_[computes] - prefill_[*ideal.prefill];
  }
  return std::max(0.0, regret);
}

void Omniscient::on_sent(const Choice& choice, const workloads::Request& request) {
  const std::uint32_t computes = choice.prefill.value_or(choice.row);
  const double uncached = uncached_[computes];
  work_[computes].queued_tokens += uncached;
  prompt_tokens_ += static_cast<double>(request.prompt->tokens);
  hit_tokens_ += static_cast<double>(request.prompt->tokens) - uncached;
  Work& work = work_[choice.row];
  const double kv_tokens = static_cast<double>(request.output_tokens) + uncached;
  work.kv_tokens += kv_tokens;
  sent_[request.id.value()] = {.choice = choice, .uncached = uncached, .kv_tokens = kv_tokens};
}

void Omniscient::on_first_token(const workloads::Request& request) {
  const auto at = sent_.find(request.id.value());
  if (at == sent_.end()) return;
  Sent& sent = at->second;
  work_[sent.choice.prefill.value_or(sent.choice.row)].queued_tokens -= sent.uncached;
  sent.uncached = 0;
  if (sent.decodes) return;
  sent.decodes = true;
  work_[sent.choice.row].decoding += 1;
  work_[sent.choice.row].context += mean_context(request);
}

void Omniscient::on_completed(const workloads::Request& request) {
  on_first_token(request);
  const auto at = sent_.find(request.id.value());
  if (at == sent_.end()) return;
  Work& work = work_[at->second.choice.row];
  work.decoding -= 1;
  work.context -= mean_context(request);
  work.kv_tokens -= at->second.kv_tokens;
  sent_.erase(at);
}

}  // namespace routesim::sim
