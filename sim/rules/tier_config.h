// KV blocks of a vLLM engine outside GPU memory: the flags of its KV connector, and the rules that
// differ between releases.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/describe.h"
#include "base/units.h"

namespace routesim::sim {

enum class EnginePreset;

/// The KV connector (vLLM's --kv-transfer-config) that keeps blocks outside GPU memory.
enum class KvConnector { kOffloading, kSimpleCpu, kLmcache, kLmcacheMp, kMooncakeStore, kLlmdFs };

/// Which blocks make room in host memory.
enum class KvEviction { kLru, kArc, kLfu, kFifo, kMru };

/// A server that only stores, or only loads: KVTransferConfig's kv_role.
enum class KvRole { kProducer, kConsumer };

/// Files that hold what host memory holds, and more.
struct KvDiskConfig {
  std::string root;                           ///< Folder; a shared one serves several servers.
  std::optional<double> gib;                  ///< Of one engine core; absent = no limit.
  std::optional<double> gib_per_gpu;          ///< Of the worker of each GPU.
  std::optional<bool> shared;                 ///< All servers mount one file system.
  std::optional<double> gb_per_s;             ///< Of that, per direction, 10^9 bytes/s.
  std::optional<double> thread_gb_per_s;      ///< Of one request's files.
  std::optional<std::int64_t> read_threads;   ///< Requests that are read at once.
  std::optional<std::int64_t> write_threads;  ///< Requests that are written at once.
};
void describe(Describer& d, KvDiskConfig& c);

/// Pulls from the host memory of other servers.
struct KvPullConfig {
  std::int64_t port = 7777;  ///< As the router's side-car names it.
};
void describe(Describer& d, KvPullConfig& c);

/// A store besides the servers, which all of them read.
struct KvRemoteConfig {
  std::string url;
};
void describe(Describer& d, KvRemoteConfig& c);

/// The tiers below GPU memory as the user configures them. Absent values are the preset's.
struct KvTierConfig {
  KvConnector connector = KvConnector::kOffloading;
  std::optional<double> cpu_gib;             ///< Of one engine core, all its GPUs together.
  std::optional<double> cpu_gib_per_gpu;     ///< Of the worker of each GPU, instead of `cpu_gib`.
  std::optional<std::int64_t> cpu_chunks;    ///< The same as a number of chunks.
  std::optional<std::int64_t> chunk_tokens;  ///< What one key stands for; absent = a KV block.
  std::optional<std::int64_t> chunk_blocks;  ///< The same in KV blocks.
  std::optional<bool> prompt_only;           ///< Blocks of answers are not offloaded.
  std::optional<KvEviction> eviction;
  std::optional<std::int64_t> store_threshold;
  std::optional<bool> lazy;
  std::optional<bool> partial_chunks;
  std::optional<bool> layerwise;
  std::optional<bool> blocking_loads;
  std::optional<bool> async_lookup;
  std::optional<std::int64_t> min_hit_tokens;
  std::optional<bool> self_describing_events;
  std::optional<KvRole> role;
  std::optional<KvDiskConfig> disk;
  std::optional<KvPullConfig> pulls;
  std::optional<KvRemoteConfig> remote;
  /// LMCache's own settings. Readers turn them into the keys above, so it is empty by then.
  Document lmcache_config;
};
void describe(Describer& d, KvTierConfig& c);

/// Files behind host memory, decided.
struct DiskRules {
  std::string root;
  bool shared = false;     ///< One store for all servers with this root, not per host.
  double bytes_per_s = 0;  ///< Of that store, per direction; 0 = what the host or network has.
  std::int64_t read_threads = 0, write_threads = 0;  ///< 0 = no files.
  double thread_bytes_per_s = 0;

  bool in_use() const { return read_threads + write_threads > 0; }
};

/// The same with every value decided.
struct TierRules {
  std::int64_t cpu_chunks = 0;    ///< Room in host memory, in chunks of one group; 0 = no tier.
  std::int64_t chunk_blocks = 1;  ///< KV blocks per chunk.
  double block_bytes = 0;         ///< Of a KV block of one group, on all GPUs of the engine.
  double link_bytes_per_s = 0;    ///< Between host and all GPUs of the engine, per direction.
  bool prompt_only = false;
  /// A chunk being written delays the request that would hit it; false: it is a miss. vLLM from
  /// v0.25 (LookupResult.HIT_PENDING).
  bool waits_for_writes = true;
  /// A request's stored chunks become readable when it is over, and until then its GPU blocks are
  /// kept. vLLM until v0.20 (finished_sending in OffloadingConnectorScheduler); since then each
  /// copy counts as soon as it is done.
  bool settles_at_request_end = false;
  /// Steps wait while their own copies run (LMCache in process), and each chunk costs something
  /// besides its bytes.
  bool copies_in_steps = false;
  double load_chunk_s = 0, store_chunk_s = 0;
  std::int64_t min_hit_tokens = 0;  ///< Of LMCache: a hit that saves fewer is computed again.
  /// All servers share one store, which another program keeps (Mooncake). `cpu_chunks` is what this
  /// engine gives to it, or all of it.
  bool shared_store = false, whole_store = false;
  DiskRules disk;

  bool in_use() const { return cpu_chunks > 0; }
  /// Other engines can ask for its chunks, and it for theirs.
  bool pulls() const { return in_use() && !copies_in_steps && !shared_store; }
  /// GPU blocks of a request that is over are kept until they are stored.
  bool keeps_blocks() const { return settles_at_request_end || shared_store; }
};

/// The inputs of the rules besides the configuration.
struct TierHost {
  EnginePreset preset;
  std::int64_t block_size = 16;       ///< Tokens.
  double kv_bytes_per_token = 0;      ///< Bytes of one group of layers, all GPUs of the engine.
  std::int64_t gpus = 1;              ///< GPUs of the engine.
  double link_bytes_per_s = 0;        ///< Between host and one GPU, per direction.
  std::int64_t descriptor_bytes = 0;  ///< Bytes that one copy descriptor moves, on one GPU.
};

/// Host memory of one engine core with `gpus` GPUs, GiB, unless it is given in chunks.
double host_gib(const KvTierConfig& config, std::int64_t gpus);

/// Sources: vLLM v0.19.1 and v0.27.1, distributed/kv_transfer/kv_connector/v1/offloading and
/// v1/kv_offload/cpu; LMCache v0.4.7 v1/config.py.
TierRules resolve_tiers(const KvTierConfig& config, const TierHost& host);

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::KvConnector> {
  static constexpr std::array<std::string_view, 6> value = {
      "offloading", "simple-cpu", "lmcache", "lmcache-mp", "mooncake-store", "llm-d-fs"};
};
template <>
struct routesim::EnumNames<routesim::sim::KvEviction> {
  static constexpr std::array<std::string_view, 5> value = {"lru", "arc", "lfu", "fifo", "mru"};
};
template <>
struct routesim::EnumNames<routesim::sim::KvRole> {
  static constexpr std::array<std::string_view, 2> value = {"producer", "consumer"};
};
