#include "sim/rules/tier_config.h"

#include <algorithm>

#include "sim/rules/engine_config.h"

namespace routesim::sim {

namespace {

/// A copy takes this long besides its bytes, seconds: measured on H100 and H200 with
/// cudaMemcpyBatchAsync (scenarios/measured/gpu_kernels, within 8 % from 32 KiB to 32 MiB).
constexpr double kDescriptorSeconds = 0.44e-6;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
/// LMCache's chunks: tokens, and GiB of each GPU's worker (v1/config.py).
constexpr std::int64_t kLmcacheChunk = 256;
constexpr double kLmcacheGib = 5;
/// Mooncake's global_segment_size (mooncake/store/worker.py), GiB of each GPU's worker.
constexpr double kMooncakeGib = 4;
/// The cost of a chunk to LMCache besides its bytes. LMCache/LMCache#1740 logs 16 chunks of
/// Qwen3-8B (0.570 GB) stored in 11.9 ms, and 40 (1.476 GB) loaded in 33.4 ms; 50 GB/s explain 11.4
/// and 29.5 ms of that.
constexpr double kLmcacheStoreSeconds = 33e-6;
constexpr double kLmcacheLoadSeconds = 98e-6;

}  // namespace

void describe(Describer& d, KvDiskConfig& c) {
  field(d,
        {"root",
         "Folder of the files, or several between commas (root_dir, LMCache's local_disk). Servers "
         "that share it find each other's blocks."},
        c.root);
  field(d, {"gib", "Room of one engine core, GiB; no limit when absent, and none for offloading."},
        c.gib, RealRange{.min = 0});
  field(d, {"gib_per_gpu", "Room of each GPU's worker, GiB (LMCache's max_local_disk_size)."},
        c.gib_per_gpu, RealRange{.min = 0});
  field(d,
        {"shared",
         "All servers mount one file system, over the network, and find each other's files there. "
         "When false, the files are on each host's own drives (cluster.host)."},
        c.shared);
  field(d,
        {"gb_per_s",
         "What the drives of a host, or the shared file system for all servers together, read, and "
         "write, 10^9 bytes/s. When absent: what cluster.host says, or no limit but the servers' "
         "network."},
        c.gb_per_s, RealRange{.min = 0, .min_open = true});
  field(d,
        {"thread_gb_per_s",
         "What one thread reads or writes, one file after another, 10^9 bytes/s; an estimate of 3 "
         "when absent."},
        c.thread_gb_per_s, RealRange{.min = 0, .min_open = true});
  field(d, {"read_threads", "Requests whose blocks are read at once; 16 when absent."},
        c.read_threads, IntRange{0, 4096});
  field(d, {"write_threads", "Requests whose blocks are written at once; 16 when absent."},
        c.write_threads, IntRange{0, 4096});
}

void describe(Describer& d, KvPullConfig& c) {
  field(d, {"port", "Port at which a server answers pulls (the router's side-car asks for it)."},
        c.port, IntRange{1, 65'535});
}

void describe(Describer& d, KvRemoteConfig& c) {
  field(d, {"url", "Address of the store, such as redis://host:6379 or s3://bucket."}, c.url);
}

namespace {

void describe_capacity(Describer& d, KvTierConfig& c) {
  field(d,
        {"cpu_gib",
         "Host memory for the blocks of one engine core (DP rank), all its GPUs together, GiB "
         "(--kv-offloading-size, cpu_bytes_to_use). For lmcache-mp: of the node's server. For "
         "mooncake-store: of the whole store, where a process of its own holds it."},
        c.cpu_gib, RealRange{.min = 0, .max = 1'000'000});
  field(d,
        {"cpu_gib_per_gpu",
         "The same for the worker of each GPU, GiB: what LMCache (max_local_cpu_size) and Mooncake "
         "(global_segment_size) count; when absent 5 for lmcache, 4 for mooncake-store."},
        c.cpu_gib_per_gpu, RealRange{.min = 0, .max = 1'000'000});
  field(d, {"cpu_chunks", "The same as a number of chunks (num_cpu_blocks of vLLM v0.11)."},
        c.cpu_chunks, IntRange{0, 1'000'000'000});
  field(d,
        {"chunk_tokens",
         "Tokens that are stored and found together, a multiple of block_size (the connector's own "
         "block_size; LMCache's chunk_size). When absent: a KV block, for LMCache 256 tokens."},
        c.chunk_tokens, IntRange{1, 1'048'576});
  field(d, {"chunk_blocks", "The same in KV blocks (blocks_per_chunk)."}, c.chunk_blocks,
        IntRange{1, 65'536});
}

void describe_levels(Describer& d, KvTierConfig& c) {
  field(d,
        {"blocking_loads",
         "A step waits for the loads of its requests (enable_async_loading and load_async say the "
         "opposite). Only what the connector does by default is simulated: true for lmcache, "
         "false for the others."},
        c.blocking_loads);
  field(d,
        {"min_hit_tokens",
         "A hit that saves fewer tokens is computed again (min_retrieve_tokens); lmcache only."},
        c.min_hit_tokens, IntRange{0, 1'000'000'000});
  field(d,
        {"disk",
         "Blocks in files behind host memory (secondary tier fs). Simulated for offloading from "
         "2026-H2 on, and models without groups of windowed layers."},
        c.disk);
}

/// Settings that the engine does not follow yet. Whoever reads them says so.
void describe_left_out(Describer& d, KvTierConfig& c) {
  field(d,
        not_modelled("store_threshold", "Lookups of a chunk before it is stored.",
                     "every chunk is stored when it is computed"),
        c.store_threshold, IntRange{0, 1'000'000});
  field(d,
        not_modelled("lazy",
                     "Store a block only when GPU memory is about to give it up "
                     "(lazy_offload).",
                     "blocks are stored when they are computed"),
        c.lazy);
  field(d,
        not_modelled("partial_chunks",
                     "Store the last chunk of a prompt though it is not full (save_unfull_chunk).",
                     "only full chunks are stored"),
        c.partial_chunks);
  field(d,
        not_modelled("layerwise", "Copy one layer while another computes (use_layerwise).",
                     "a copy moves all layers at once"),
        c.layerwise);
  field(d,
        not_modelled("async_lookup",
                     "The scheduler does not wait for the store's answer "
                     "(lookup_async).",
                     "an answer takes no time"),
        c.async_lookup);
  field(d,
        not_modelled("self_describing_events",
                     "KV events of this tier carry tokens (self_describing_kv_events).",
                     "events of host memory carry no tokens"),
        c.self_describing_events);
  field(d,
        not_modelled("role",
                     "A server only stores (kv_producer) or only loads (kv_consumer); both when "
                     "absent.",
                     "every server stores and loads"),
        c.role);
  field(d,
        approximated("pulls", "Blocks from the host memory of other servers (secondary tier p2p).",
                     "every server with tiers pulls from those that the router names"),
        c.pulls);
  field(d,
        not_modelled("remote",
                     "A store that all servers read (LMCache's remote_url, secondary "
                     "tier obj).",
                     "a server loads from its own tiers only"),
        c.remote);
}

}  // namespace

void describe(Describer& d, KvTierConfig& c) {
  field(
      d,
      {"connector",
       "vLLM's connector that keeps KV blocks outside the GPU. offloading: OffloadingConnector "
       "(--kv-offloading-size). simple-cpu: SimpleCPUOffloadConnector. lmcache: "
       "LMCacheConnectorV1, in the worker of each GPU. lmcache-mp: LMCacheMPConnector, one server "
       "per node. mooncake-store: MooncakeStoreConnector, one store for all servers. llm-d-fs: "
       "llm-d's file system backend. Simulated are offloading, lmcache and mooncake-store; the "
       "others get a warning, and their servers run without the tier."},
      c.connector);
  describe_capacity(d, c);
  field(d,
        {"prompt_only",
         "Blocks of answers are not stored (offload_prompt_only; LMCache's save_decode_cache says "
         "the opposite). When absent as in the preset's releases: true from 2026-H2 on, and for "
         "lmcache and mooncake-store."},
        c.prompt_only);
  field(
      d,
      {"eviction",
       "Which blocks make room in host memory (eviction_policy, LMCache's cache_policy); lru when "
       "absent. Only lru is simulated."},
      c.eviction);
  describe_levels(d, c);
  describe_left_out(d, c);
  field(d,
        {"lmcache_config",
         "LMCache's settings, for every key above that is not written: the path of its YAML file "
         "(LMCACHE_CONFIG_FILE), or the file's content."},
        c.lmcache_config);
}

double host_gib(const KvTierConfig& c, std::int64_t gpus) {
  const double each = c.connector == KvConnector::kLmcache         ? kLmcacheGib
                      : c.connector == KvConnector::kMooncakeStore ? kMooncakeGib
                                                                   : 0;
  return c.cpu_gib.value_or(c.cpu_gib_per_gpu.value_or(each) * static_cast<double>(gpus));
}

TierRules resolve_tiers(const KvTierConfig& c, const TierHost& host) {
  TierRules r;
  const bool newest = host.preset == EnginePreset::k2026H2;
  const bool lmcache = c.connector == KvConnector::kLmcache;
  const bool mooncake = c.connector == KvConnector::kMooncakeStore;
  if (c.connector != KvConnector::kOffloading && !lmcache && !mooncake) return r;
  const std::int64_t blocks = c.chunk_blocks.value_or(
      lmcache ? std::max<std::int64_t>(1, kLmcacheChunk / host.block_size) : 1);
  r.chunk_blocks = c.chunk_tokens ? *c.chunk_tokens / host.block_size : blocks;
  r.block_bytes = static_cast<double>(host.block_size) * host.kv_bytes_per_token;
  const double chunk_bytes = r.block_bytes * static_cast<double>(r.chunk_blocks);
  r.cpu_chunks =
      c.cpu_chunks.value_or(static_cast<std::int64_t>(host_gib(c, host.gpus) * kGib / chunk_bytes));
  const double copy_bytes = static_cast<double>(host.descriptor_bytes);
  r.link_bytes_per_s = copy_bytes / (kDescriptorSeconds + copy_bytes / host.link_bytes_per_s) *
                       static_cast<double>(host.gpus);
  if (mooncake) {
    r.shared_store = true;
    r.whole_store = c.cpu_gib.has_value();
    r.waits_for_writes = false;
    r.prompt_only = true;
    return r;
  }
  if (lmcache) {
    r.link_bytes_per_s = host.link_bytes_per_s * static_cast<double>(host.gpus);
    r.copies_in_steps = true;
    r.load_chunk_s = kLmcacheLoadSeconds;
    r.store_chunk_s = kLmcacheStoreSeconds;
    r.min_hit_tokens = c.min_hit_tokens.value_or(0);
    r.prompt_only = true;
    return r;
  }
  if (c.disk) {
    constexpr std::int64_t kThreads = 16;
    constexpr double kThreadGbPerSecond = 3;
    r.disk = {.root = c.disk->root,
              .shared = c.disk->shared.value_or(false),
              .bytes_per_s = c.disk->gb_per_s.value_or(0) * 1e9,
              .read_threads = c.disk->read_threads.value_or(kThreads),
              .write_threads = c.disk->write_threads.value_or(kThreads),
              .thread_bytes_per_s = c.disk->thread_gb_per_s.value_or(kThreadGbPerSecond) * 1e9};
  }
  r.prompt_only = c.prompt_only.value_or(newest);
  r.waits_for_writes = newest;
  r.settles_at_request_end = !newest;
  return r;
}

}  // namespace routesim::sim
