// A load of any size for scale experiments: groups with a popularity law, Poisson arrivals, made on
// the fly. Memory holds the group prefixes' identities only, not the requests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/distributions.h"
#include "workloads/load_generator.h"
#include "workloads/load_traits.h"
#include "workloads/options.h"

namespace routesim::workloads {

struct GroupLoadConfig {
  std::int64_t requests = 1'000'000;
  double rate = 1000;  ///< Requests/s; infinity = all at once.
  std::int64_t groups = 1000;
  double zipf_exponent = 0;            ///< Popularity ~ 1 / rank^exponent; 0 = uniform.
  std::int64_t prompts_per_group = 0;  ///< Pool prompts per group; 0: every suffix is unique.
  Distribution prefix_len = Distribution::fixed(2048);  ///< Tokens the group shares.
  Distribution suffix_len = Distribution::fixed(128);   ///< Tokens of the request's own.
  Distribution output_len = Distribution::fixed(128);
  std::int64_t max_concurrency = 0;  ///< Permits of the client; 0: unlimited.
  double timeout_s = 0;              ///< Client timeout; 0: none.
};

void describe(Describer& d, GroupLoadConfig& t);

LoadTraits traits_of(const GroupLoadConfig& config);
std::vector<LoadFile> files_of(const GroupLoadConfig& config);
std::string scale_rates(GroupLoadConfig& config, double by);
std::string hold_rate(GroupLoadConfig& config, double rate, double seconds);

std::unique_ptr<LoadGenerator> make_load_generator(const GroupLoadConfig& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

}  // namespace routesim::workloads

template <>
struct routesim::workloads::LoadKey<routesim::workloads::GroupLoadConfig> {
  static constexpr Field value = {"groups",
                                  "Streamed Poisson load over groups that share a prefix."};
};
