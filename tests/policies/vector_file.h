// Reading tests/vectors/*.json.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace routesim::test {

using Json = nlohmann::ordered_json;

/// A test that runs cases of a vector file. Every one fails on a case it does not know.
struct VectorRunner {
  std::string_view file, suite, test;
};
/// Who runs which file. vector_coverage_test.cpp holds it against the folder.
inline constexpr std::array<VectorRunner, 41> kVectorRunners = {{
    {"active_request_scorer", "ScorerVectors", "ActiveRequest"},
    {"active_request_scorer_legacy", "ScorerVectors", "ActiveRequestWithOwnCounters"},
    {"approx_prefix_cache_producer", "ApproxPrefixIndex", "ProducerVectors"},
    {"approx_prefix_hashes", "BlockKeys", "ApproximateHashVectors"},
    {"block_extra_features", "BlockKeys", "ExtraFeatureVectors"},
    {"block_extra_features", "KvEvents", "RawExtraKeyVectors"},
    {"block_keys", "BlockKeys", "Vectors"},
    {"burst_prefix_cache_producer", "BurstVectors", "AllCases"},
    {"chwbl", "Balancers", "KubeAiVectors"},
    {"config_loader", "DocumentVectors", "AllCases"},
    {"context_length_aware", "ScorerVectors", "ContextLength"},
    {"data_parallel_profile_handler", "HandlerVectors", "SingleAndDataParallel"},
    {"disagg_profile_handler", "HandlerVectors", "Disagg"},
    {"eviction_in_flight", "ReclamationVectors", "AllCases"},
    {"inflight_load_producer", "InFlightVectors", "AllCases"},
    {"kv_block_index", "PrefixIndex", "IndexVectors"},
    {"kv_cache_utilization_scorer", "ScorerVectors", "QueueRunningAndKvUsage"},
    {"kv_events", "KvEvents", "WireVectors"},
    {"kv_events", "KvIngest", "ProcessingVectors"},
    {"latency_observation_scorer", "LatencyObservationVectors", "AllCases"},
    {"latency_observer_producer", "TtftHistoryVectors", "AllCases"},
    {"latency_scorer", "ScorerVectors", "Latency"},
    {"lmetric_scorer", "ScorerVectors", "LMetric"},
    {"load_aware_scorer", "ScorerVectors", "LoadAware"},
    {"load_filters", "FilterVectors", "LoadAndPrefix"},
    {"lora_affinity", "ScorerVectors", "LoraAffinity"},
    {"misc_scorers", "ScorerVectors", "Misc"},
    {"multicluster_queue_scorer", "ScorerVectors", "MulticlusterQueue"},
    {"no_hit_lru", "NoHitLruVectors", "AllCases"},
    {"pd_profile_handler", "HandlerVectors", "PrefillDecode"},
    {"pickers", "PickerVectors", "AllCases"},
    {"precise_prefix_cache_scorer", "PreciseVectors", "FinalScoresAndProducer"},
    {"precise_prefix_cache_scorer", "PrefixIndex", "ScoringVectors"},
    {"prefix_cache_scorer", "ScorerVectors", "PrefixCache"},
    {"queue_scorer", "ScorerVectors", "QueueRunningAndKvUsage"},
    {"role_filters", "FilterVectors", "RolesAndLabels"},
    {"running_requests_scorer", "ScorerVectors", "QueueRunningAndKvUsage"},
    {"saturation_detectors", "DetectorVectors", "AllCases"},
    {"scheduler_profile", "ProfileVectors", "FilterClampWeightSum"},
    {"session_affinity", "SessionVectors", "AllCases"},
    {"token_load_scorer", "ScorerVectors", "TokenLoad"},
}};

/// The cases of one vector file, by name without folder and extension. The running test must stand
/// in kVectorRunners.
inline std::vector<Json> vector_cases(const std::string& name) {
  const auto* running = testing::UnitTest::GetInstance()->current_test_info();
  bool listed = running == nullptr;
  for (const VectorRunner& r : kVectorRunners)
    listed = listed ||
             (r.file == name && r.suite == running->test_suite_name() && r.test == running->name());
  if (!listed) throw std::runtime_error(name + " is read by a test that kVectorRunners lacks");
  const std::string path = std::string(ROUTESIM_SOURCE_DIR) + "/tests/vectors/" + name + ".json";
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  const Json file = Json::parse(in);
  std::vector<Json> cases;
  for (const Json& c : file.at("cases")) cases.push_back(c);
  if (cases.empty()) throw std::runtime_error(path + " has no cases");
  return cases;
}

inline std::string name_of(const Json& c) { return c.at("name").get<std::string>(); }

/// A member by reference, or null (which iterates as empty) when there is none.
inline const Json& member(const Json& j, const char* name) {
  static const Json none;
  return j.contains(name) ? j.at(name) : none;
}
/// 64-bit values are decimal strings in the vectors; small ones may be numbers.
inline std::uint64_t u64(const Json& j) {
  return j.is_string() ? std::stoull(j.get<std::string>()) : j.get<std::uint64_t>();
}
inline std::vector<std::uint64_t> u64_list(const Json& j) {
  std::vector<std::uint64_t> out;
  for (const Json& v : j) out.push_back(u64(v));
  return out;
}
/// 1, 2, ..., n.
inline std::vector<std::uint32_t> counting_tokens(std::size_t n) {
  std::vector<std::uint32_t> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<std::uint32_t>(i + 1);
  return tokens;
}

}  // namespace routesim::test
