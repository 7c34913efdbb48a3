// `routesim score --steps`: a balancer's decisions, step by step and without a simulation. The
// vectors of balancers are such files. README.md documents them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "policies/balancers/balancers.h"

namespace routesim::tools {

/// Name of the format in the ledger of keys.
inline constexpr std::string_view kScoreStepsFormat = "score steps";

/// A server of the pool.
struct ScriptEndpoint {
  policies::BalancerEndpoint endpoint;
};
/// The numbers of one server's last scrape.
struct ScriptMetrics {
  std::string endpoint;
  double waiting = 0, running = 0, kv_usage = 0;
};
/// KV blocks that a server stores or removes.
struct ScriptBlocks {
  std::string endpoint;
  std::vector<std::uint64_t> keys;
};
struct ScriptRequest {
  std::int64_t id = 0;
  std::string prefix, adapter, session;
  std::optional<std::string> text, user;
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint64_t> block_keys;
  std::int64_t prompt_tokens = 0;
  std::optional<std::int64_t> max_tokens;
  std::int32_t priority = 0;
  Document headers;
};
struct ScriptCompletion {
  std::int64_t id = 0;
  std::int64_t output_tokens = 0;
};

/// One step; what is given happens in the order of the members.
struct ScriptStep {
  std::optional<Duration> at;  ///< Time since the start; time never goes back.
  std::optional<std::vector<ScriptEndpoint>> endpoints;
  std::vector<ScriptMetrics> metrics;
  std::vector<ScriptBlocks> stored, removed;
  std::optional<ScriptRequest> request;
  std::optional<std::vector<std::string>> expect;  ///< Any of these; empty = no pick.
  std::optional<std::vector<std::string>> expect_prefill;
  std::optional<std::int64_t> expect_status;
  std::optional<bool> expect_held;
  std::optional<std::int64_t> first_token;  ///< Id of a request in flight.
  std::optional<ScriptCompletion> completed;
};

/// The part of a scenario's `routing` that balancers read.
struct ScriptRouting {
  policies::BalancerKind balancer = policies::BalancerKind::kRoundRobin;
  policies::BalancerSettings settings;
};

/// One balancer from its start.
struct ScriptCase {
  std::string name, note;
  ScriptRouting routing;
  std::uint64_t seed = 1;
  std::vector<ScriptStep> steps;
};

struct BalancerScript {
  std::string source;  ///< Where the expectations come from.
  std::vector<ScriptCase> cases;
};
void describe(Describer& d, ScriptEndpoint& e);
void describe(Describer& d, ScriptMetrics& m);
void describe(Describer& d, ScriptBlocks& b);
void describe(Describer& d, ScriptRequest& r);
void describe(Describer& d, ScriptCompletion& c);
void describe(Describer& d, ScriptStep& s);
void describe(Describer& d, ScriptRouting& r);
void describe(Describer& d, ScriptCase& c);
void describe(Describer& d, BalancerScript& s);

/// Null where `diagnostics` received an error.
std::optional<BalancerScript> read_balancer_script(const std::string& path,
                                                   Diagnostics& diagnostics);

/// One decision of a script.
struct ScriptDecision {
  std::string case_name;
  std::size_t step = 0;  ///< From 0 on.
  std::int64_t request = 0;
  std::optional<std::string> endpoint, prefill;
  bool held = false;
  int http_status = 0;     ///< 0 with a pick, and while it is held.
  std::string unexpected;  ///< How it differs from what is expected; "" if it does not.
};

/// Carries out every case. Steps that name unknown endpoints or requests are errors.
std::vector<ScriptDecision> run_balancer_script(const BalancerScript& script,
                                                Diagnostics& diagnostics);

/// The decisions as JSON lines.
std::string render_decisions(const std::vector<ScriptDecision>& decisions);

}  // namespace routesim::tools

template <>
struct routesim::EnumNames<routesim::policies::ServerRole> {
  static constexpr std::array<std::string_view, 3> value = {"both", "prefill", "decode"};
};
