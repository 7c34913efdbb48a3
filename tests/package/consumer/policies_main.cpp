// A router in a hundred lines: a configuration, an engine's KV events, one decision.
// Build it with find_package(routesim COMPONENTS policies) and routesim::policies.
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "policies/config/document.h"
#include "policies/config/make_scheduler.h"
#include "policies/index/block_keys.h"
#include "policies/kv_events/kv_event_ingest.h"
#include "policies/kv_events/kv_events.h"
#include "policies/scheduler.h"
#include "policies/views.h"

namespace rp = routesim::policies;
namespace tree = routesim::tree;

namespace {

constexpr const char* kModel = "Qwen/Qwen3-32B";

tree::Node plugin(const char* type, const tree::Node& parameters = tree::map({})) {
  return tree::map({{"type", tree::text(type)}, {"parameters", parameters}});
}
tree::Node reference(const char* name, std::int64_t weight) {
  return tree::map({{"pluginRef", tree::text(name)}, {"weight", tree::number(weight)}});
}

/// The tree that a YAML reader would hand over; plain data, because the library parses no files.
tree::Node document() {
  const auto block = tree::map({{"blockSize", tree::number(std::int64_t{16})}});
  const auto precise = tree::map({{"tokenProcessorConfig", block}});
  const auto profile = tree::map(
      {{"name", tree::text("default")},
       {"plugins",
        tree::list({reference("precise-prefix-cache-scorer", 3), reference("queue-scorer", 2)})}});
  return tree::map({{"apiVersion", tree::text("llm-d.ai/v1alpha1")},
                    {"kind", tree::text("EndpointPickerConfig")},
                    {"plugins", tree::list({plugin("precise-prefix-cache-scorer", precise),
                                            plugin("queue-scorer")})},
                    {"schedulingProfiles", tree::list({profile})}});
}

int fail(const routesim::Diagnostics& diagnostics) {
  for (const routesim::Diagnostic& d : diagnostics.items())
    std::fprintf(stderr, "%s\n", routesim::to_string(d).c_str());
  return 1;
}

}  // namespace

int main() {
  routesim::Diagnostics diagnostics;
  const auto config = rp::load_endpoint_picker_config(*document(), {}, diagnostics);
  if (!config) return fail(diagnostics);
  const auto scheduler = rp::make_scheduler(*config, {.seed = 1}, diagnostics);
  if (scheduler == nullptr || scheduler->precise_index() == nullptr) return fail(diagnostics);

  // The pool, as discovered and scraped. Times are the caller's: the library has no clock.
  const auto now = routesim::SimTime::zero() + routesim::Duration::seconds(1);
  rp::EndpointTable pool;
  for (const char* address : {"10.0.0.1", "10.0.0.2"}) {
    const auto id = pool.add({.address = address, .pod_name = address, .model = kModel});
    pool.set_metrics(id, /*waiting=*/1, /*running=*/4, /*kv_usage=*/0.5, now);
  }

  // The second engine publishes that it holds 32 tokens. apply_message() takes such events as the
  // bytes that arrive.
  std::vector<std::uint32_t> tokens(40);
  std::iota(tokens.begin(), tokens.end(), 1000U);
  rp::BlockStored stored;
  stored.hashes = {11, 12};
  stored.tokens.assign(tokens.begin(), tokens.begin() + 32);
  stored.block_size = 16;
  rp::KvEventIngestor ingestor(scheduler->kv_ingest_options(), *scheduler->precise_index(),
                               *scheduler->tiers());
  const routesim::EndpointId holder(scheduler->index_holder(pool, 1));
  ingestor.apply(holder, kModel, stored);

  // A prompt that begins with those tokens.
  const rp::BlockKeyScheme scheme = scheduler->block_key_scheme();
  const rp::BlockKeyChain chain(scheme.algorithm, static_cast<std::uint32_t>(scheme.block_size),
                                scheme.hash_seed, kModel);
  std::vector<std::uint64_t> keys;
  chain.append_keys(rp::BlockKey{0}, tokens, keys);
  const rp::RequestView request{.id = 1, .model = kModel, .prompt_tokens = 40, .block_keys = keys};

  scheduler->advance(now);
  const rp::Decision decision = scheduler->schedule(request, pool, now);
  if (!decision.routed()) return 1;
  scheduler->on_routed(request, decision, pool, now);
  std::printf("era %s: %s\n", std::string(rp::name(config->era)).c_str(),
              pool.info(decision.primary.value()).host_port().c_str());
  return decision.primary == holder ? 0 : 1;
}
