// The cost of a routing policy behind the C interface (balancer: library): one whole decision of
// the C++ example. Without keys there is no prefix to look up, and what is left is the interface
// and the policy's own arithmetic. The goal: at most 200 ns with 8 servers.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "policies/index/prefix_index.h"
#include "policies/views.h"
#include "sim/custom/library.h"

namespace routesim::sim {
namespace {

constexpr std::int64_t kBlock = 64;
constexpr std::int64_t kPromptKeys = 118;  // 7,552 tokens, as in the other benchmarks.

/// Servers of which each holds one block more of the prompt than the one before.
class Pool {
 public:
  Pool(std::uint32_t servers, std::size_t keys)
      : balancer_(make_library({.path = ROUTESIM_EXAMPLE_POLICY, .options = "0.5"}, 1, 0)) {
    for (std::size_t i = 0; i < keys; ++i) keys_.push_back(i + 1);
    std::vector<policies::BalancerEndpoint> endpoints;
    for (std::uint32_t i = 0; i < servers; ++i) {
      const std::string name = "server-" + std::to_string(i);
      endpoints.push_back({.name = name, .block_size = kBlock});
      table_.add({.address = name, .pod_name = name});
    }
    balancer_->set_endpoints(endpoints);
    policies::PrefixIndex& index = *balancer_->prefix_index();
    for (std::uint32_t i = 0; i < servers; ++i) {
      const auto held = std::span(keys_).first(std::min<std::size_t>(i, keys));
      index.stored(EndpointId(i), policies::kGpuTier, 0, held, held);
    }
  }
  std::uint32_t decide(std::uint64_t id) {
    policies::BalancerRequest request;
    request.id = id;
    request.prompt_tokens = kPromptKeys * kBlock;
    request.block_keys = keys_;
    request.metrics = &table_;
    const policies::BalancerAnswer answer = balancer_->pick(request);
    if (!answer) throw std::runtime_error("the policy picks no server");
    return answer->endpoint;
  }

 private:
  std::vector<policies::BlockKey> keys_;
  policies::EndpointTable table_;
  std::unique_ptr<policies::Balancer> balancer_;
};

void library_decision(benchmark::State& state) {
  const auto servers = static_cast<std::uint32_t>(state.range(0));
  const auto keys = static_cast<std::size_t>(state.range(1));
  Pool pool(servers, keys);
  if (keys > 0 && pool.decide(1) != servers - 1)
    throw std::runtime_error("the longest prefix wins");
  std::uint64_t id = 1;
  for (auto _ : state) benchmark::DoNotOptimize(pool.decide(++id));
}
BENCHMARK(library_decision)
    ->ArgNames({"servers", "keys"})
    ->ArgsProduct({{8, 16, 64}, {0, kPromptKeys}})
    ->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace routesim::sim
