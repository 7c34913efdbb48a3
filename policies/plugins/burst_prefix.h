// burst-prefix-cache-producer: gathers the requests of a short window and places those that share a
// prompt together, before any cache has it. llm-d-router at ebab6879 (August 2026),
// pkg/epp/framework/plugins/requestcontrol/dataproducer/burstprefix.
#pragma once

#include <unordered_map>

#include "policies/build_context.h"

namespace routesim::policies {

enum class BurstBalance { kRequests, kTokens };

struct BurstPrefixParameters {
  std::int64_t window_ms = 100, max_per_replica = -1, block_size_tokens = 64;
  std::int64_t max_prefix_tokens = 0, min_colocate_blocks = 0, max_batch_size = 1000;
  std::string balance_by = "requests";
};
void describe(Describer& d, BurstPrefixParameters& p);

/// A server of the batch.
struct BurstReplica {
  std::string name;
  std::int64_t running = 0;  ///< Requests, as last scraped.
};
struct BurstRules {
  std::int64_t max_per_replica = -1;  ///< Requests of one group on one replica; -1 = no limit.
  std::int64_t min_colocate_blocks = 0;
  bool balance_tokens = false;
};
/// The replica of each prompt of a batch, given its block hashes; nothing = no preference. Ties go
/// to the replica with less of the batch, then with fewer running requests, then by name.
std::vector<std::optional<std::size_t>> place_burst(
    std::span<const std::vector<std::uint64_t>> prompts, std::span<const BurstReplica> replicas,
    const BurstRules& rules);

/// Every request waits for the end of the window that the first one opened, and is decided then by
/// what is known then; upstream's scorers see metrics of its arrival. A request above maxBatchSize
/// is decided at once, without match info. A request that gives up while it waits stays in its
/// batch. The block hashes are those of the approximate producers, so all of these have one size.
class BurstPrefixProducer final : public Producer {
 public:
  BurstPrefixProducer(const BurstPrefixParameters& p, const PluginSpec& spec,
                      BuildContext& context);
  void produce(Cycle& cycle) const override;
  Facts facts() const override { return Facts::kPrefixMatches; }
  SimTime on_arrived(const RequestView& request, const EndpointTable& endpoints,
                     SimTime now) override;
  void advance(SimTime now) override;

 private:
  struct Batch {
    std::vector<std::uint64_t> requests;
    std::vector<std::vector<std::uint64_t>> prompts;  ///< Parallel: the block hashes.
    std::vector<EndpointRow> rows;                    ///< Of the first request with a prompt.
    std::vector<BurstReplica> replicas;               ///< Parallel to rows.
    SimTime end;
  };
  struct Placed {
    bool in_batch = true;
    std::optional<EndpointRow> row = {};
  };
  std::vector<std::uint64_t> hashes_of(const RequestView& request) const;
  bool is_full() const;

  BurstRules rules_;
  Duration window_;
  std::int64_t max_batch_size_;
  ApproxScheme scheme_;
  std::size_t slot_;
  std::optional<Batch> batch_;
  std::unordered_map<std::uint64_t, Placed> placed_;  ///< Since the last window ended.
};

}  // namespace routesim::policies
