// Coding-agent sessions as kv-cache-tester records them: requests with the hashes of the blocks of
// their prompts, and sub-agents with requests of their own. Rebuilt as inference-perf does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workloads/sessions/replay_corpus.h"
#include "workloads/sessions/replay_settings.h"

namespace routesim::workloads {

struct WekaRequest {
  double t = 0;  ///< Start, in seconds; a sub-agent's may count from its own start.
  std::int64_t input = 0, output = 0;  ///< Tokens.
  double api_time = 0;                 ///< Seconds the answer took.
  std::vector<std::int64_t> hash_ids{};
};

struct WekaSubagent {
  double t = 0;  ///< Start, in seconds.
  std::string agent_id{};
  std::int64_t tool_tokens = 0, system_tokens = 0;
  std::vector<WekaRequest> requests{};
};

/// One session.
struct WekaTrace {
  std::string id{};
  std::int64_t block_size = 0;  ///< Tokens of a hash id; 0: the replay's default.
  std::int64_t tool_tokens = 0, system_tokens = 0;
  std::vector<WekaRequest> requests{};
  std::vector<WekaSubagent> subagents{};
};

/// The calls of a trace: messages cut out of the blocks of consecutive requests, sub-agents that
/// overlap themselves taken apart, gaps between starts capped, waits capped. A hash id is the same
/// block in all requests of the trace, and in no other trace. No calls without requests.
ReplaySession weka_session(const WekaTrace& trace, const WekaTraceReplay& settings);

/// Reads traces that the filter keeps, at most num_dataset_entries of a file of lines. Two with the
/// same id are an error.
std::unique_ptr<ReplayReader> make_weka_reader(const WekaTraceReplay& settings);

}  // namespace routesim::workloads
