#include "sim/router/perfect_predictor.h"

#include <algorithm>

namespace routesim::sim {
namespace {

/// `computed` tokens of a prompt are there; the step computes `chunk` more.
void add_chunk(models::BatchShape& shape, std::int64_t computed, std::int64_t chunk) {
  if (chunk <= 0) return;
  const std::int64_t end = computed + chunk;
  ++shape.prefill_requests;
  shape.prefill_tokens += chunk;
  shape.prefill_context += end;
  shape.prefill_pairs += end * end - computed * computed;
}

double step_ms(const ResolvedPool& pool, models::BatchShape shape, int ranks) {
  if (pool.lock_step) {
    shape.group_tokens = shape.tokens();
    shape.group_total_tokens = shape.tokens() * ranks;
  }
  return static_cast<double>(pool.latency->step_ticks(shape)) /
         static_cast<double>(models::kTicksPerMillisecond);
}

}  // namespace

std::int64_t PerfectPredictor::cached_tokens(const EndpointHome& home,
                                             std::int64_t prompt_tokens) const {
  const BatchScheduler& scheduler = replicas_[home.replica]->scheduler(home.rank);
  if (!scheduler.rules().enable_prefix_caching) return 0;
  const KvCache& kv = scheduler.kv();
  CachedPrefix hits;
  const std::span<const BlockKey> keys = keys_->of(kv.block_size()).engine;
  const std::int64_t blocks = scheduler.held_blocks(keys, kv.lookup(keys, hits));
  // vLLM computes at least the last token.
  return std::min(blocks, (prompt_tokens - 1) / kv.block_size()) * kv.block_size();
}

std::int64_t PerfectPredictor::most_cached(std::uint32_t row, std::int64_t prompt_tokens) const {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < endpoints_.ranks(row); ++i)
    most = std::max(most, cached_tokens(endpoints_[endpoints_.first(row) + i], prompt_tokens));
  return most;
}

void PerfectPredictor::on_routed(std::uint64_t request, std::uint32_t row,
                                 std::int64_t prompt_tokens) {
  const Sent sent{row, prompt_tokens - most_cached(row, prompt_tokens)};
  if (sent_.emplace(request, sent).second) ahead_[row] += sent.tokens;
}

void PerfectPredictor::on_computed(std::uint64_t request) {
  const auto it = sent_.find(request);
  if (it == sent_.end()) return;
  ahead_[it->second.row] -= it->second.tokens;
  sent_.erase(it);
}

void PerfectPredictor::predict(const policies::RequestView& request,
                               std::span<const policies::LatencyFeatures> candidates,
                               std::span<policies::LatencyPrediction> answers) const {
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::uint32_t row = candidates[i].endpoint;
    std::int64_t done = 0;  // Of the tokens ahead, by sequences that are not through.
    for (std::size_t k = 0; k < endpoints_.ranks(row); ++k) {
      const EndpointHome& home = endpoints_[endpoints_.first(row) + k];
      replicas_[home.replica]->advance_to(now_);
      done += replicas_[home.replica]->scheduler(home.rank).prefill_progress();
    }
    // The ranks of a front end share what was sent to it.
    const auto ranks = static_cast<std::int64_t>(endpoints_.ranks(row));
    const std::int64_t ahead = std::max<std::int64_t>(0, ahead_[row] - done) / ranks;
    for (std::size_t k = 0; k < endpoints_.ranks(row); ++k) {
      const EndpointHome& home = endpoints_[endpoints_.first(row) + k];
      const policies::LatencyPrediction p = predict(home, ahead, request.prompt_tokens);
      if (!answers[i].present || p.ttft_ms < answers[i].ttft_ms) answers[i] = p;
    }
  }
}

policies::LatencyPrediction PerfectPredictor::predict(const EndpointHome& home, std::int64_t ahead,
                                                      std::int64_t prompt_tokens) const {
  const ResolvedPool& pool = plan_.pools[home.pool];
  const Replica& replica = *replicas_[home.replica];
  const BatchScheduler& scheduler = replica.scheduler(home.rank);
  models::BatchShape decodes;
  // A pipeline's batches share them, and the chunks of a prompt follow each other at the distance
  // of a stage.
  const std::int64_t stages = pool.rules.pipeline_stages;
  decodes.decode_requests = scheduler.decoding() / stages;
  decodes.decode_context = scheduler.decode_context() / stages;
  const SpeculationRules& speculation = pool.rules.speculation;
  decodes.draft_tokens = speculation.tokens * decodes.decode_requests;
  policies::LatencyPrediction out{.present = true};
  std::int64_t computed = cached_tokens(home, prompt_tokens);
  // A decode server pulls the prompt, and computes a token.
  if (pool.config.role == PoolRole::kDecode) ahead = 0, computed = prompt_tokens - 1;
  const std::int64_t budget =
      std::max<std::int64_t>(1, pool.rules.max_num_batched_tokens - decodes.tokens());
  while (computed < prompt_tokens) {
    models::BatchShape step = decodes;
    const std::int64_t others = std::min(ahead, budget);
    add_chunk(step, 0, others);
    ahead -= others;
    const std::int64_t own = std::min(prompt_tokens - computed, budget - others);
    add_chunk(step, computed, own);
    computed += own;
    const double ms = step_ms(pool, step, replica.ranks());
    out.ttft_ms += computed < prompt_tokens ? ms / static_cast<double>(stages) : ms;
    decodes.decode_context += decodes.decode_requests;
  }
  models::BatchShape with = decodes;
  ++with.decode_requests;
  with.draft_tokens += speculation.tokens;
  with.decode_context += prompt_tokens;
  out.tpot_ms = step_ms(pool, with, replica.ranks()) / speculation.mean_length();
  return out;
}

}  // namespace routesim::sim
