// What a scenario says about the life of its fleet: how servers start and end, when routers learn
// of it, and what happens to them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"

namespace routesim::sim {

/// Where a server finds its weights. Network file system: EFS, NFS, Lustre. Object store: a bucket
/// or Hugging Face, downloaded to the machine and read from there. Memory: the machine's page cache
/// has them.
enum class WeightStorage : std::uint8_t { kNvme, kNetwork, kObjectStore, kMemory };

/// The start of a server, phase by phase. What is absent is derived from the model, its storage and
/// the release: see start_up.h.
struct StartUpConfig {
  std::optional<Duration> total;  ///< From the pod to its first request; the phases are shares.
  std::optional<Duration> node;   ///< Until a machine is there; absent: it is.
  std::optional<Duration> image_pull;  ///< Absent: by image_gb.
  std::optional<double> image_gb;      ///< To pull, 10^9 bytes; absent: the machine has it.
  std::optional<Duration> process;     ///< Imports, configuration, workers, communicators.
  std::optional<Duration> load;        ///< Weights, from storage to GPU memory.
  std::optional<Duration> compile;     ///< torch.compile.
  std::optional<Duration> warm_up;     ///< Memory profile, KV cache, CUDA graphs.
  WeightStorage storage = WeightStorage::kNvme;
  std::optional<double> storage_gb_per_s;  ///< For one server, 10^9 bytes/s; absent: by storage.
  bool compile_cache = false;              ///< Compiled code is found on a volume.
  bool snapshot = false;                   ///< The process is restored from a snapshot.
  Duration probe_period = Duration::seconds(5);  ///< Readiness probe, or a startup probe's.
  Duration probe_delay;                          ///< initialDelaySeconds.
  Duration probe_repeats;                        ///< successThreshold - 1 periods.
};
void describe(Describer& d, StartUpConfig& c);

/// The end of a server that is asked to end (Kubernetes' pod lifecycle).
struct TerminationConfig {
  Duration pre_stop;                       ///< A preStop hook that sleeps.
  Duration shutdown_timeout;               ///< vLLM's --shutdown-timeout: 0 = requests are cut.
  Duration grace = Duration::seconds(30);  ///< terminationGracePeriodSeconds.
};
void describe(Describer& d, TerminationConfig& c);

/// When the router learns that a server has come or gone.
struct DiscoveryConfig {
  std::optional<Duration> join, leave;   ///< Absent: as the product does.
  std::optional<Duration> leave_unseen;  ///< A server that crashed: nobody told the router.
};
void describe(Describer& d, DiscoveryConfig& c);

/// The same, decided.
struct Discovery {
  Duration join, leave, leave_unseen;
  Duration leave_vanished;  ///< A server that is lost with its machine.
  bool by_checks = false;   ///< A server that is back before the router hears of it has not left.
};

enum class FleetEventKind : std::uint8_t {
  kCrash,
  kNodeLoss,
  kDrain,
  kSlow,
  kKvEventsLost,
  kRouterRestart,
  kScale,
  kRollOut,
  kLinkLost,
  kScrapesLost
};

/// Something that happens to the fleet, at a time or at a rate. Keys that do not fit the kind are
/// errors.
struct FleetEventConfig {
  FleetEventKind kind = FleetEventKind::kCrash;
  std::optional<Duration> at;
  std::optional<Duration> mean_time_between;  ///< Of one server, exponential, instead of `at`.
  std::string pool;                           ///< Empty: the only pool.
  std::vector<std::int64_t> servers;          ///< Empty: one that serves, drawn.
  std::optional<Duration> lasts;              ///< Repair, or how long it is slow or silent.
  std::optional<double> factor;               ///< kSlow.
  std::optional<std::int64_t> replicas;       ///< kScale.
  std::optional<std::int64_t> router;         ///< kRouterRestart: the process.
  bool graceful = false;                      ///< kRouterRestart: it gives up its lease.
  std::string to;                             ///< kRollOut: the pool with the new configuration.
  std::string max_surge, max_unavailable;     ///< kRollOut: a number or a percentage; "" = 25%.
  Duration min_ready_seconds;                 ///< kRollOut: from ready to available.
  bool recreate = false;                      ///< kRollOut without either: strategy Recreate.
};
void describe(Describer& d, FleetEventConfig& c);

/// A number of servers as Kubernetes writes it, `2` or `25%`, of `whole` servers; nothing if the
/// text is neither. A percentage is rounded up or down.
std::optional<std::int64_t> servers_of(std::string_view text, std::int64_t whole, bool up);

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::WeightStorage> {
  static constexpr std::array<std::string_view, 4> value = {"nvme", "network", "object-store",
                                                            "memory"};
};
template <>
struct routesim::EnumNames<routesim::sim::FleetEventKind> {
  static constexpr std::array<std::string_view, 10> value = {
      "crash",          "node-loss", "drain",    "slow",      "kv-events-lost",
      "router-restart", "scale",     "roll-out", "link-lost", "scrapes-lost"};
};
