#include "tools/ingest/scenario/run_checks.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config_node.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "policies/config/make_scheduler.h"
#include "policies/views.h"
#include "sim/plan/mix.h"
#include "sim/plan/unsupplied_inputs.h"
#include "tools/ingest/loads/inference_perf_yaml.h"
#include "tools/results/text_table.h"
#include "workloads/prompts.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kEnoughRequests = 64;
constexpr int kMostInstants = 10'000;  // Some loads begin with long silence.

/// Tokens of prompt and answer that a server of the pool can hold, as its engine decides it: one
/// block is vLLM's null block, and the last token's KV is never computed.
std::int64_t longest(const sim::ResolvedPool& pool) {
  return std::min(pool.rules.max_model_len,
                  (pool.rules.num_gpu_blocks - 1) * pool.rules.block_size + 1);
}

bool routes_by_prefix(const sim::RunPlan& plan) {
  if (!plan.endpoint_picker) {
    const sim::RoutingConfig& routing = plan.scenario.routing;
    const policies::BalancerNeeds needs = sim::balancer_needs(routing);
    return needs.text || needs.token_runs || needs.leading_tokens > 0 || needs.block_keys ||
           routing.balancer == sim::BalancerKind::kPrefixHash ||
           routing.balancer == sim::BalancerKind::kOmniscient;
  }
  const std::optional<policies::Requirements> needed =
      policies::requirements(*plan.endpoint_picker);
  return needed && (needed->signals.block_keys || needed->signals.approx_hashes);
}

bool has_no_tokens(const workloads::Request& request) {
  return workloads::is_stand_in(*request.prompt);
}

/// A trace that does not tell what prompts have in common makes each prompt one piece of text of
/// its own.
void check_shared(const sim::RunPlan& plan, const std::vector<workloads::Request>& requests,
                  Diagnostics& diagnostics) {
  if (!traits_of(plan.scenario.workload).is_trace || requests.size() < 2) return;
  std::set<std::uint64_t> contents;
  for (const workloads::Request& request : requests) {
    const std::vector<workloads::Segment>& segments = request.prompt->segments;
    if (segments.size() != 1 || !contents.insert(segments.front().content).second) return;
  }
  if (routes_by_prefix(plan))
    diagnostics.warning(
        {}, "workload.trace",
        "says nothing of what prompts share, so no prefix is ever found in a "
        "cache, and a router that looks for one cannot gain by it",
        "records need hash_ids, a text (JSON lines), prefix_group and prefix_tokens, "
        "or a session_id");
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
  double steps = 0, transfer = 0;  // The slowest request, on its best server.
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
    if (plan.has_prefill()) transfer = std::max(transfer, best_transfer);
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
  const std::vector<workloads::Request> requests = first_requests(plan, kEnoughRequests);
  check_shared(plan, requests, diagnostics);
  // A trace is warned about where its record stands.
  if (!traits_of(plan.scenario.workload).is_trace &&
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

namespace {

// Measured on idle fleets of 20,000 and 60,000 ranks, and with full caches on 1,024; estimates err
// on the low side.
constexpr std::int64_t kBytesPerRank = 3500;
constexpr std::int64_t kBytesPerBucket = 24;  ///< A rank has one per token of a block.
constexpr std::int64_t kBytesPerCachedBlock = 10;
constexpr std::int64_t kBytesPerIndexedBlock = 50;

/// Products of counts, before they are bounded.
__extension__ using Wide = __int128;

/// At most what 64 bits hold, with room for a factor of ten.
std::int64_t bounded(Wide bytes) {
  return static_cast<std::int64_t>(std::min<Wide>(bytes, std::int64_t{1} << 59U));
}

/// A size in GiB, with one decimal.
std::string gib(std::int64_t bytes) {
  const std::int64_t tenths = bytes * 10 / (std::int64_t{1} << 30U);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

}  // namespace

std::optional<std::int64_t> available_memory() {
  std::optional<std::int64_t> least;
  const auto limit = [&least](std::int64_t bytes) {
    least = std::min(least.value_or(bytes), bytes);
  };
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key, unit; meminfo >> key; std::getline(meminfo, unit)) {
    std::int64_t kib = 0;
    if (key == "MemAvailable:" && meminfo >> kib) limit(kib * 1024);
  }
  std::int64_t group = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group) limit(group);
  struct rlimit space {};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
      space.rlim_cur <= static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max()))
    limit(static_cast<std::int64_t>(space.rlim_cur));
  return least;
}

MemoryNeed memory_need(const sim::RunPlan& plan) {
  Wide idle = 0, blocks = 0;
  for (const sim::ResolvedPool& pool : plan.pools) {
    const Wide ranks = static_cast<Wide>(pool.config.replicas) * pool.config.data_parallel;
    idle += ranks * (kBytesPerRank + kBytesPerBucket * pool.rules.block_size);
    if (pool.rules.enable_prefix_caching) blocks += ranks * pool.rules.num_gpu_blocks;
  }
  Wide full = idle + blocks * kBytesPerCachedBlock;
  if (plan.endpoint_picker)
    full += blocks * kBytesPerIndexedBlock * plan.scenario.routing.router_replicas;
  return {.idle = bounded(idle), .full = bounded(full)};
}

void check_memory(const sim::RunPlan& plan, std::optional<std::int64_t> available,
                  Diagnostics& diagnostics) {
  if (!available) return;
  const MemoryNeed need = memory_need(plan);
  if (need.idle > *available) {
    diagnostics.error({}, "cluster.pools",
                      "the run takes at least " + gib(need.idle) + " of memory for its servers, " +
                          gib(*available) + " are available",
                      "simulate fewer servers, or use a machine with more memory");
  } else if (need.full > *available) {
    diagnostics.warning({}, "cluster.pools",
                        "the run may come to take " + gib(need.full) +
                            " of memory: that much once every server's prefix cache is full; " +
                            gib(*available) + " are available",
                        "simulate fewer servers or requests, or larger blocks (engine.block_size)");
  }
}

std::vector<std::pair<std::string, std::string>> request_headers(const LoadedVariant& variant) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&out](const Document& headers) {
    for (auto& header : workloads::headers_of(headers)) out.push_back(std::move(header));
  };
  for_each_load(variant.scenario.workload, [&](const std::string&, const workloads::Load& load,
                                               const auto&) { add(traits_of(load).headers); });
  for (const workloads::TrafficClass& c : classes_of(variant.scenario.workload)) add(c.headers);
  return out;
}

void warn_unread_headers(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const sim::RoutingConfig& routing = variant.scenario.routing;
  const bool picks =
      routing.balancer == sim::BalancerKind::kEndpointPicker && variant.endpoint_picker.has_value();
  std::vector<std::string> read;
  if (picks) {
    read = sim::headers_read(*variant.endpoint_picker);
  } else {
    policies::BalancerNeeds needs = sim::balancer_needs(routing);
    read = std::move(needs.session_headers);
    read.insert(read.end(), needs.other_headers.begin(), needs.other_headers.end());
  }
  const auto check = [&](const ConfigNode& headers, const std::string& path,
                         std::string_view format) {
    std::string unread;
    for (const ConfigNode::Member& m : headers.members()) {
      if (!m.value->is_scalar()) continue;
      const bool is_read = std::any_of(read.begin(), read.end(), [&m](const std::string& other) {
        return policies::same_header(m.key, other);
      });
      if (!is_read) unread += (unread.empty() ? "" : ", ") + printable(m.key);
      diagnostics.key(key_use(m.key_where, format, path + "." + printable(m.key),
                              is_read ? Fate::kUsed : Fate::kNoEffect,
                              is_read ? "" : "nothing that routes reads it"));
    }
    if (unread.empty()) return;
    diagnostics.warning({}, path,
                        "has no effect on results: " +
                            (picks ? "no plugin of the router that is simulated reads " + unread
                                   : "the balancer " + std::string(enum_name(routing.balancer)) +
                                         (read.empty() ? " reads no headers (got " + unread + ")"
                                                       : " does not read " + unread)));
  };
  const sim::WorkloadConfig& workload = variant.scenario.workload;
  for_each_load(workload, [&](const std::string& place, const workloads::Load& load, const auto&) {
    const workloads::LoadTraits traits = traits_of(load);
    if (traits.headers.root != nullptr)
      check(*traits.headers.root, child_path(place, traits.headers_key), kInferencePerfFormat);
  });
  const std::vector<workloads::TrafficClass> classes = classes_of(workload);
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i].headers.root != nullptr)
      check(*classes[i].headers.root, child_path(class_path(workload, i), "headers"),
            ReadOptions{}.format);
}

}  // namespace routesim::tools
