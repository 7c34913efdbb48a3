// The multi-round question-answering benchmark of the vLLM production stack: users who come and go,
// and chats that grow.
//
// Source: vllm-project/production-stack, benchmarks/multi-round-qa/multi-round-qa.py at 0a330da;
// its run.sh at 137aa0e is a published configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/load_generator.h"
#include "workloads/load_traits.h"
#include "workloads/options.h"

namespace routesim::workloads {

/// One of several calls of the script, as run.sh makes them. What is absent is taken from above.
struct MultiRoundRun {
  std::optional<double> qps{}, time{};
  std::optional<std::int64_t> num_users{}, num_rounds{}, init_user_id{};
};

void describe(Describer& d, MultiRoundRun& t);

/// The script's flags under their names, with underscores.
struct MultiRoundQaConfig {
  std::int64_t num_users = 10;
  std::int64_t num_rounds = 5;
  double qps = 0.5;  ///< Requests/s of all users together, as the script counts.
  std::int64_t shared_system_prompt = 1000;
  std::int64_t user_history_prompt = 2000;
  std::int64_t answer_len = 100;
  double time = 100;  ///< Seconds in which requests are sent.
  std::int64_t init_user_id = 0;
  double interval = 10;    ///< Seconds between runs.
  std::string sharegpt{};  ///< Path of ShareGPT.json, as data_preprocessing.py writes it.
  std::vector<MultiRoundRun> runs{};
};

void describe(Describer& d, MultiRoundQaConfig& t);

LoadTraits traits_of(const MultiRoundQaConfig& config);
std::vector<LoadFile> files_of(const MultiRoundQaConfig& config);
std::string scale_rates(MultiRoundQaConfig& config, double by);
std::string hold_rate(MultiRoundQaConfig& config, double rate, double seconds);

/// Each run is a stage of ten warm-up requests, which are not reported, and one of its rate.
std::unique_ptr<LoadGenerator> make_load_generator(const MultiRoundQaConfig& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

}  // namespace routesim::workloads

template <>
struct routesim::workloads::LoadKey<routesim::workloads::MultiRoundQaConfig> {
  static constexpr Field value = {
      "multi_round_qa",
      "Flags of the vLLM production stack's multi-round-qa.py, with underscores."};
};
