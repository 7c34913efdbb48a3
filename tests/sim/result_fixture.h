// The result of one request, right to the last number: tests doctor it.
#pragma once

#include "sim/observe/run_result.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {

/// A request of 40 prompt tokens, 32 of them hit, was due at 1 ms, sent at 2 ms and got the first
/// of 10 tokens at 20 ms and the last at 30 ms, from the second of three servers.
inline RunResult one_request_result() {
  RunResult r;
  StageResult& s = r.stages.emplace_back();
  s.info.name = "0";
  s.requests = s.successes = 1;
  s.first_send = s.last_send = at_ms(2);
  s.last_end = at_ms(30);
  s.schedule_delay.add(0.001);
  s.request_latency.add(0.028);
  s.time_to_first_token.add(0.018);
  s.time_per_output_token.add(0.010 / 9);
  s.normalized_time_per_output_token.add(0.0028);
  s.inter_token_latency.add_nano(1'000'000, 8);
  s.inter_token_latency.add_nano(2'000'000, 1);
  s.prompt_tokens.add(40);
  s.output_tokens.add(10);
  s.prompt_tokens_total = 40;
  s.cached_tokens_total = 32;
  s.output_tokens_total = 10;
  s.kv_cache_usage_mean = 0.25;
  s.kv_cache_usage_max = 0.5;
  r.summary = s;
  r.summary.info.name = "summary";
  r.routing = {.decisions = 1, .prompt_tokens = 40, .hit_tokens = 32};
  r.replicas.resize(3);
  for (ReplicaResult& replica : r.replicas)
    replica.name = "pool-" + std::to_string(&replica - r.replicas.data());
  ReplicaResult& used = r.replicas[1];
  used.requests = used.max_running = 1;
  used.steps = 10;
  used.busy_s = 0.027;
  used.prefix_query_tokens = 40;
  used.prefix_hit_tokens = 32;
  used.kv_cache_usage_mean = 0.125;
  used.kv_cache_usage_max = 0.5;
  r.end = at_ms(30);
  return r;
}

}  // namespace routesim::sim::testing
