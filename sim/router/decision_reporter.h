// Shows a probe what a routing decision saw, and carries out the decisions the probe forces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "policies/balancers/balancers.h"
#include "policies/scheduler.h"
#include "policies/views.h"
#include "sim/engine/endpoints.h"
#include "sim/engine/replica.h"
#include "sim/kv/prompt_keys.h"
#include "sim/plan/resolve.h"
#include "sim/router/decision_probe.h"
#include "sim/router/route.h"
#include "sim/telemetry/scraper.h"

namespace routesim::sim {

/// One decision as the router makes it.
struct DecisionSubject {
  policies::Scheduler* scheduler;  ///< Null behind a balancer.
  const policies::EndpointTable& table;
  const workloads::Request& request;
  const PromptKeys& keys;
  SimTime now;
  std::function<policies::RequestView()> view;  ///< The request as the router sees it.
};

/// Fills the records of a DecisionProbe. The router calls before() and after() around the decisions
/// that the probe wants, and force() inside of each.
class DecisionReporter {
 public:
  /// All arguments outlive the reporter. `scraper` is null where the router reads no metrics.
  DecisionReporter(DecisionProbe& probe, RouterKeyOptions key_options, const RunPlan& plan,
                   const Endpoints& endpoints,
                   const std::vector<std::unique_ptr<Replica>>& replicas, const Scraper* scraper);

  bool wants(const workloads::Request& request) { return probe_.wants(request); }
  /// Replaces the choice for a request that the probe wants elsewhere.
  void force(policies::Decision& decision, const workloads::Request& request) const;
  void force(policies::BalancerPick& pick, const workloads::Request& request) const;
  /// Before the decision is made: making it changes what the indexes say.
  DecisionRecord before(const DecisionSubject& subject) const;
  /// Completes the record and hands it to the probe.
  void after(const DecisionSubject& subject, const policies::Scratch& scratch, const Route& route,
             DecisionRecord& record) const;

 private:
  void find_cached(std::uint32_t row, const DecisionSubject& subject, EndpointFacts& f) const;
  EndpointFacts facts(std::uint32_t row, const DecisionSubject& subject) const;
  void explain_omniscient(const DecisionSubject& subject, DecisionRecord& record) const;

  DecisionProbe& probe_;
  RouterKeyOptions key_options_;
  const RunPlan& plan_;
  const Endpoints& endpoints_;
  const std::vector<std::unique_ptr<Replica>>& replicas_;
  const Scraper* scraper_;
};

}  // namespace routesim::sim
