#include "tools/ingest/first_requests.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "policies/config/make_scheduler.h"
#include "tools/results/text_table.h"
#include "workloads/prompts.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kEnough = 64;
constexpr int kMostInstants = 10'000;  // Of a load whose stages begin with long silence.

/// Tokens of prompt and answer that a server of the pool can hold, as its engine decides it: one
/// block is vLLM's null block, and the last token's KV is never computed.
std::int64_t longest(const sim::ResolvedPool& pool) {
  return std::min(pool.rules.max_model_len,
                  (pool.rules.num_gpu_blocks - 1) * pool.rules.block_size + 1);
}

bool routes_by_prefix(const sim::RunPlan& plan) {
  if (!plan.endpoint_picker)
    return plan.scenario.routing.balancer == sim::BalancerKind::kPrefixHash;
  const std::optional<policies::Requirements> needed =
      policies::requirements(*plan.endpoint_picker);
  return needed && (needed->signals.block_keys || needed->signals.approx_hashes);
}

bool has_no_tokens(const workloads::Request& request) {
  return workloads::is_stand_in(*request.prompt);
}

/// A trace tells what prompts have in common by its hash ids only. Without them each prompt is one
/// piece of text of its own.
void check_shared(const sim::RunPlan& plan, const std::vector<workloads::Request>& requests,
                  Diagnostics& diagnostics) {
  if (!traits_of(plan.scenario.workload.load).is_trace || requests.size() < 2) return;
  std::set<std::uint64_t> contents;
  for (const workloads::Request& request : requests) {
    const std::vector<workloads::Segment>& segments = request.prompt->segments;
    if (segments.size() != 1 || !contents.insert(segments.front().content).second) return;
  }
  if (routes_by_prefix(plan))
    diagnostics.warning({}, "workload.trace",
                        "says nothing of what prompts share, so no prefix is ever found in a "
                        "cache, and a router that looks for one cannot gain by it",
                        "records need hash_ids (format mooncake), one per block of the prompt");
}

/// Days that engine steps of one token each take, one after the other.
double days_of_steps(const sim::ResolvedPool& pool, const workloads::Request& request) {
  models::BatchShape shape;
  shape.decode_requests = 1;
  shape.decode_context = request.prompt->tokens;
  const double step = static_cast<double>(pool.latency->step_ticks(shape));
  return step * static_cast<double>(request.output_tokens) /
         static_cast<double>(models::kTicksPerMillisecond) / 86'400e3;
}

/// Days that the KV of the request takes between two servers.
double days_of_transfer(const sim::RunPlan& plan, const sim::ResolvedPool& pool,
                        const workloads::Request& request) {
  const double bytes = static_cast<double>(request.prompt->tokens) * pool.kv_bytes_per_token;
  return bytes / (plan.scenario.cluster.transfer.bandwidth_gbps / 8 * 1e9) / 86'400;
}

/// Refuses servers so slow that one of the first requests outlasts the clock. Those that follow may
/// still do so, which the run then says.
void check_clock(const sim::RunPlan& plan, const std::vector<workloads::Request>& requests,
                 Diagnostics& diagnostics) {
  const double most = (sim::kEndOfTime - SimTime::zero()).to_seconds() / 86'400;
  const bool hands_over = std::any_of(
      plan.pools.begin(), plan.pools.end(),
      [](const sim::ResolvedPool& pool) { return pool.config.role == sim::PoolRole::kPrefill; });
  double steps = 0, transfer = 0;  // Of the slowest request, on the server that is best for it.
  for (const workloads::Request& request : requests) {
    double best_steps = most, best_transfer = most;
    bool served = false;
    for (const sim::ResolvedPool& pool : plan.pools) {
      const bool fits = request.prompt->tokens + request.output_tokens <= longest(pool);
      if (!fits || pool.config.role == sim::PoolRole::kPrefill) continue;
      served = true;
      best_steps = std::min(best_steps, days_of_steps(pool, request));
      best_transfer = std::min(best_transfer, days_of_transfer(plan, pool, request));
    }
    if (!served) continue;
    steps = std::max(steps, best_steps);
    if (hands_over) transfer = std::max(transfer, best_transfer);
  }
  const std::string holds = " days or more, which is all that a run's clock holds";
  if (steps >= most)
    diagnostics.error({}, "cluster.pools",
                      "the steps of one request take " + fixed_text(most, 0) + holds,
                      "look at the numbers of the accelerator, the model and its curve");
  if (transfer >= most)
    diagnostics.error({}, "cluster.transfer.bandwidth_gbps",
                      "the KV of one request takes " + fixed_text(most, 0) + holds,
                      "raise it: NICs have 100 to 400 Gbit/s");
}

}  // namespace

std::vector<workloads::Request> first_requests(const sim::RunPlan& plan, std::size_t count) {
  std::vector<workloads::Request> requests;
  Diagnostics ignored;  // The run itself reports what is wrong with its load.
  const auto load = plan.make_load(plan.scenario.seed, ignored);
  if (load == nullptr || ignored.has_errors()) return requests;
  for (int i = 0; i < kMostInstants && requests.size() < count; ++i) {
    const SimTime next = load->next_action();
    if (next == SimTime::max()) break;
    load->advance(next, requests);
  }
  return requests;
}

void check_first_requests(const sim::RunPlan& plan, Diagnostics& diagnostics) {
  std::int64_t room = 0;
  for (const sim::ResolvedPool& pool : plan.pools) room = std::max(room, longest(pool));
  std::int64_t shortest = 0, longest_prompt = 0;
  const std::vector<workloads::Request> requests = first_requests(plan, kEnough);
  check_shared(plan, requests, diagnostics);
  // A trace is warned about where its record stands.
  if (!traits_of(plan.scenario.workload.load).is_trace &&
      std::any_of(requests.begin(), requests.end(), has_no_tokens))
    diagnostics.warning({}, "workload",
                        "has prompts of 0 tokens, which vLLM refuses: they are sent with 1",
                        "give every prompt a token");
  check_clock(plan, requests, diagnostics);
  for (const workloads::Request& request : requests) {
    const std::int64_t tokens = request.prompt->tokens + request.output_tokens;
    shortest = shortest == 0 ? tokens : std::min(shortest, tokens);
    longest_prompt = std::max(longest_prompt, request.prompt->tokens);
  }
  if (longest_prompt > sim::kMostModelLength) {
    diagnostics.error({}, "workload",
                      "has a prompt of " + std::to_string(longest_prompt) +
                          " tokens, and no server can be told to take more than " +
                          std::to_string(sim::kMostModelLength));
  } else if (shortest > room) {
    const std::string which =
        requests.size() == 1
            ? "the first request has "
            : "the first " + std::to_string(requests.size()) + " requests have at least ";
    diagnostics.warning({}, "workload",
                        which + std::to_string(shortest) +
                            " tokens of prompt and answer, and no server takes more than " +
                            std::to_string(room) + ": they will fail",
                        "shorten them, or raise engine.max_model_len or num_gpu_blocks");
  }
}

}  // namespace routesim::tools
