// Requests and servers as the routers of other products see them.
#pragma once

#include <string>
#include <vector>

#include "policies/balancers/balancers.h"
#include "sim/kv/prompt_keys.h"
#include "sim/plan/resolve.h"
#include "workloads/request.h"

namespace routesim::sim {

/// The server that a balancer picks, from the pool it belongs to.
policies::BalancerEndpoint balancer_endpoint(std::string name, const ResolvedPool& pool,
                                             const std::vector<std::string>& adapters);

/// Writes the parts of a request that one kind of balancer asks for, and no others.
class BalancerInputs {
 public:
  BalancerInputs() = default;
  /// `plan` outlives this.
  BalancerInputs(policies::BalancerNeeds needs, const RunPlan& plan, double bytes_per_token);

  /// Valid until the next call.
  policies::BalancerRequest request(const workloads::Request& request, const PromptKeys& keys,
                                    SimTime now);
  /// Some servers compute prompts for others.
  bool has_prefill() const { return plan_->has_prefill(); }

 private:
  /// Writes all but the first `skip` tokens.
  static void write_runs(const workloads::Prompt& prompt, std::int64_t skip,
                         std::vector<policies::TextRun>& out);
  void write_tokens(const workloads::Prompt& prompt);
  void write_identity(const workloads::Request& request, policies::BalancerRequest& out);

  policies::BalancerNeeds needs_;
  const RunPlan* plan_ = nullptr;
  double bytes_per_token_ = 1;
  std::vector<bool> is_chat_;           ///< Requests are messages.
  std::int64_t prefix_characters_ = 0;  ///< Of KubeAI's prefix-hash; 0 = nobody asks.
  std::string prefix_;
  std::vector<policies::TextRun> runs_;
  std::vector<policies::TextRun> token_runs_;
  std::vector<std::uint32_t> tokens_;
  std::string session_;
  std::string cookie_;
  std::vector<policies::Header> headers_;
};

}  // namespace routesim::sim
