// Which settings of KV connectors there are, and what becomes of each.
#include <array>

#include "tools/ingest/kv_tier_files.h"

namespace routesim::tools {

/// A room of its own, as other tables have constants of the same names.
namespace kv_rules {

using enum Fate;

constexpr std::string_view kAddresses = "it is about processes and their addresses";
constexpr std::string_view kLogs = "it is about logs, metrics or profiles";
constexpr std::string_view kTransfers = "transfers cost what cluster.transfer says";
constexpr std::string_view kUnknown = "no setting of this name is known here";
constexpr std::string_view kLayout = "copies move whole blocks, however they lie in memory";
constexpr std::string_view kStorage = "storage has the speed that disk.gb_per_s says";

constexpr std::array kTierConnectorRules = {
    KeyRule{"kv_connector"},
    KeyRule{"kv_role"},
    KeyRule{"kv_load_failure_policy"},
    KeyRule{"engine_id", kNoEffect, kAddresses},
    KeyRule{"kv_rank", kNoEffect, kAddresses},
    KeyRule{"kv_parallel_size", kNoEffect, kAddresses},
    KeyRule{"kv_ip", kNoEffect, kAddresses},
    KeyRule{"kv_port", kNoEffect, kAddresses},
    KeyRule{"kv_connector_module_path", kNoEffect, "the connector is known by its name"},
    KeyRule{"kv_buffer_device", kApproximated, kLayout},
    KeyRule{"kv_buffer_size", kApproximated, kLayout},
    KeyRule{"enable_permute_local_kv", kApproximated, kLayout},
    KeyRule{"**", kNotModelled, kUnknown},
    KeyRule{"kv_connector_extra_config.**", kNotModelled, kUnknown},
    KeyRule{"kv_connector_extra_config.cpu_bytes_to_use"},
    KeyRule{"kv_connector_extra_config.cpu_bytes_to_use_per_rank"},
    KeyRule{"kv_connector_extra_config.num_cpu_blocks"},
    KeyRule{"kv_connector_extra_config.block_size"},
    KeyRule{"kv_connector_extra_config.blocks_per_chunk"},
    KeyRule{"kv_connector_extra_config.eviction_policy"},
    KeyRule{"kv_connector_extra_config.offload_prompt_only"},
    KeyRule{"kv_connector_extra_config.store_threshold"},
    KeyRule{"kv_connector_extra_config.max_tracker_size", kNotModelled,
            "store_threshold is not modelled"},
    KeyRule{"kv_connector_extra_config.lazy_offload"},
    KeyRule{"kv_connector_extra_config.self_describing_kv_events"},
    KeyRule{"kv_connector_extra_config.spec_name"},
    KeyRule{"kv_connector_extra_config.spec_module_path", kNoEffect,
            "the spec is known by its name"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].type"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].root_dir"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].n_read_threads"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].n_write_threads"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].port"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].store_config.bucket"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].host", kNoEffect, kAddresses},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].locality", kNoEffect,
            "routers do not read where the storage stands"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].prefix", kNoEffect, kAddresses},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].backends", kApproximated,
            "pulls have the speed of the network"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].num_threads", kApproximated,
            "pulls have the speed of the network"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].store_config.**", kNoEffect, kAddresses},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].enable_kv_events", kNotModelled,
            "the router hears of GPU and host memory only"},
    KeyRule{"kv_connector_extra_config.secondary_tiers[].**", kNotModelled, kUnknown},
    KeyRule{"kv_connector_extra_config.shared_storage_path"},
    KeyRule{"kv_connector_extra_config.threads_per_gpu", kApproximated, kStorage},
    KeyRule{"kv_connector_extra_config.max_staging_memory_gb", kApproximated, kStorage},
    KeyRule{"kv_connector_extra_config.gds_mode", kApproximated, kStorage},
    KeyRule{"kv_connector_extra_config.sync_load_budget_bytes", kNotModelled,
            "every load lets other requests go on"},
    KeyRule{"kv_connector_extra_config.tier_poll_interval_s", kNotModelled,
            "the end of a copy is seen once per step"},
    KeyRule{"kv_connector_extra_config.backpressure", kNotModelled,
            "stores wait for nothing but memory"},
    KeyRule{"kv_connector_extra_config.canonical_layout", kApproximated, kLayout},
    KeyRule{"kv_connector_extra_config.prefer_cross_layer_blocks", kApproximated, kLayout},
    KeyRule{"kv_connector_extra_config.enable_cross_layers_blocks", kApproximated, kLayout},
    KeyRule{"kv_connector_extra_config.load_async"},
    KeyRule{"kv_connector_extra_config.lookup_async"},
    KeyRule{"kv_connector_extra_config.save_decode_cache"},
    KeyRule{"kv_connector_extra_config.enable_lookup"},
    KeyRule{"kv_connector_extra_config.preferred_segment", kNotModelled,
            "a store has no places of its own"},
    KeyRule{"kv_connector_extra_config.lookup_rpc_port", kNoEffect, kAddresses},
    KeyRule{"kv_connector_extra_config.mooncake_rpc_port", kNoEffect, kAddresses},
    KeyRule{"kv_connector_extra_config.lmcache_rpc_port", kNoEffect, kAddresses},
    KeyRule{"kv_connector_extra_config.discard_partial_chunks"},
    KeyRule{"kv_connector_extra_config.use_layerwise"},
    KeyRule{"kv_connector_extra_config.lmcache.mp.**", kNoEffect, kAddresses},
};

constexpr KeyTable kTierConnectorTable = {
    .format = kTransferFormat,
    .source = "vllm/config/kv_transfer.py and the connectors that keep KV, v0.11 to v0.33",
    .rules = kTierConnectorRules};

constexpr std::array kServerConnectorRules = {
    KeyRule{"**", kApproximated, kTransfers},
    KeyRule{"kv_connector"},
    KeyRule{"kv_role", kNoEffect, "the pool's role says it"},
    KeyRule{"kv_load_failure_policy"},
    KeyRule{"engine_id", kNoEffect, kAddresses},
    KeyRule{"kv_rank", kNoEffect, kAddresses},
    KeyRule{"kv_parallel_size", kNoEffect, kAddresses},
    KeyRule{"kv_ip", kNoEffect, kAddresses},
    KeyRule{"kv_port", kNoEffect, kAddresses},
    KeyRule{"kv_connector_module_path", kNoEffect, "the connector is known by its name"},
};

constexpr KeyTable kServerConnectorTable = {
    .format = "kv-transfer-config between servers",
    .source = "vllm/config/kv_transfer.py and NixlConnector with its relatives, v0.11 to v0.33",
    .rules = kServerConnectorRules};

constexpr std::string_view kController = "LMCache's controller is not simulated";
constexpr std::string_view kWithBlending = "it counts with enable_blending";
constexpr std::string_view kWithPd = "it counts with enable_pd or enable_nixl";
constexpr std::string_view kWithP2p = "it counts with enable_p2p";
constexpr std::string_view kWithGds = "it counts with gds_path or weka_path";
constexpr std::string_view kPlugins = "code from elsewhere is not simulated";
constexpr std::string_view kPinned = "memory is there from the start, and pinned";
constexpr std::string_view kPatience = "loads never time out here";

constexpr std::array kLmcacheRules = {
    KeyRule{"**", kNotModelled, kUnknown},
    KeyRule{"config_file"},
    KeyRule{"chunk_size"},
    KeyRule{"local_cpu"},
    KeyRule{"max_local_cpu_size"},
    KeyRule{"local_disk"},
    KeyRule{"max_local_disk_size"},
    KeyRule{"remote_url"},
    KeyRule{"cache_policy"},
    KeyRule{"use_layerwise"},
    KeyRule{"save_decode_cache"},
    KeyRule{"save_unfull_chunk"},
    KeyRule{"enable_async_loading"},
    KeyRule{"min_retrieve_tokens"},
    KeyRule{"reserve_local_cpu_size", kNotModelled, "the host has the memory that is asked for"},
    KeyRule{"remote_serde", kApproximated, "blocks have the size of the KV cache everywhere"},
    KeyRule{"enable_kv_events", kNoEffect,
            "the router hears of blocks as routing.kv_event_delay says"},
    KeyRule{"retrieve_locations", kNotModelled, "every tier is looked up"},
    KeyRule{"store_location", kNotModelled, "every tier is stored to"},
    KeyRule{"priority_limit", kNotModelled, "requests of every priority are stored"},
    KeyRule{"external_lookup_client", kNotModelled, kPlugins},
    KeyRule{"hit_miss_ratio", kNotModelled, "the hits are those that are found"},
    KeyRule{"enable_scheduler_bypass_lookup", kApproximated, "an answer takes no time"},
    KeyRule{"lookup_server_worker_ids", kNoEffect, kAddresses},
    KeyRule{"lookup_timeout_ms", kApproximated, kPatience},
    KeyRule{"blocking_timeout_secs", kApproximated, kPatience},
    KeyRule{"pin_timeout_sec", kApproximated, kPatience},
    KeyRule{"pin_check_interval_sec", kApproximated, kPatience},
    KeyRule{"enable_p2p", kNotModelled, "a server loads from its own tiers only"},
    KeyRule{"p2p_host", kNoEffect, kWithP2p},
    KeyRule{"p2p_init_ports", kNoEffect, kWithP2p},
    KeyRule{"p2p_lookup_ports", kNoEffect, kWithP2p},
    KeyRule{"transfer_channel", kNoEffect, kWithP2p},
    KeyRule{"distributed_url", kNotModelled, kController},
    KeyRule{"lookup_url", kNotModelled, kController},
    KeyRule{"enable_controller", kNotModelled, kController},
    KeyRule{"lmcache_instance_id", kNoEffect, kAddresses},
    KeyRule{"controller_url", kNoEffect, kAddresses},
    KeyRule{"controller_pull_url", kNoEffect, kAddresses},
    KeyRule{"controller_reply_url", kNoEffect, kAddresses},
    KeyRule{"lmcache_worker_port", kNoEffect, kAddresses},
    KeyRule{"lmcache_worker_ports", kNoEffect, kAddresses},
    KeyRule{"lmcache_worker_ids", kNoEffect, kAddresses},
    KeyRule{"lmcache_worker_heartbeat_delay_time", kNoEffect, kAddresses},
    KeyRule{"lmcache_worker_heartbeat_time", kNoEffect, kAddresses},
    KeyRule{"enable_pd", kNotModelled, "transfers between servers are cluster.transfer's"},
    KeyRule{"enable_xpyd", kNotModelled, "transfers between servers are cluster.transfer's"},
    KeyRule{"enable_nixl", kNotModelled, "transfers between servers are cluster.transfer's"},
    KeyRule{"pd_role", kNoEffect, kWithPd},
    KeyRule{"pd_buffer_size", kNoEffect, kWithPd},
    KeyRule{"pd_buffer_device", kNoEffect, kWithPd},
    KeyRule{"pd_peer_host", kNoEffect, kWithPd},
    KeyRule{"pd_peer_init_port", kNoEffect, kWithPd},
    KeyRule{"pd_peer_alloc_port", kNoEffect, kWithPd},
    KeyRule{"pd_peer_query_port", kNoEffect, kWithPd},
    KeyRule{"pd_proxy_host", kNoEffect, kWithPd},
    KeyRule{"pd_proxy_port", kNoEffect, kWithPd},
    KeyRule{"pd_allocation_timeout_sec", kNoEffect, kWithPd},
    KeyRule{"pd_shutdown_timeout_sec", kNoEffect, kWithPd},
    KeyRule{"pd_condition_poll_interval_sec", kNoEffect, kWithPd},
    KeyRule{"pd_max_prefill_len", kNoEffect, kWithPd},
    KeyRule{"pd_backend_mode", kNoEffect, kWithPd},
    KeyRule{"pd_skip_proxy_notification", kNoEffect, kWithPd},
    KeyRule{"pd_bidirectional", kNoEffect, kWithPd},
    KeyRule{"nixl_role", kNoEffect, kWithPd},
    KeyRule{"nixl_peer_host", kNoEffect, kWithPd},
    KeyRule{"nixl_peer_port", kNoEffect, kWithPd},
    KeyRule{"nixl_peer_init_port", kNoEffect, kWithPd},
    KeyRule{"nixl_peer_alloc_port", kNoEffect, kWithPd},
    KeyRule{"nixl_proxy_host", kNoEffect, kWithPd},
    KeyRule{"nixl_proxy_port", kNoEffect, kWithPd},
    KeyRule{"nixl_receiver_host", kNoEffect, kWithPd},
    KeyRule{"nixl_receiver_port", kNoEffect, kWithPd},
    KeyRule{"nixl_buffer_size", kNoEffect, kWithPd},
    KeyRule{"nixl_buffer_device", kNoEffect, kWithPd},
    KeyRule{"nixl_enable_gc", kNoEffect, kWithPd},
    KeyRule{"nixl_backends", kNoEffect, kWithPd},
    KeyRule{"gds_path", kNotModelled, "there is no tier below host memory"},
    KeyRule{"weka_path", kNotModelled, "there is no tier below host memory"},
    KeyRule{"gds_path_sharding", kNoEffect, kWithGds},
    KeyRule{"gds_buffer_size", kNoEffect, kWithGds},
    KeyRule{"gds_backend", kNoEffect, kWithGds},
    KeyRule{"cufile_buffer_size", kNoEffect, kWithGds},
    KeyRule{"use_gds", kNoEffect, kWithGds},
    KeyRule{"maru_path", kNotModelled, "there is no shared memory between hosts"},
    KeyRule{"maru_pool_size", kNoEffect, "it counts with maru_path"},
    KeyRule{"local_disk_path_sharding", kNoEffect, "a GPU's blocks lie in one place here"},
    KeyRule{"local_cpu_use_hugepages", kApproximated, kPinned},
    KeyRule{"enable_lazy_memory_allocator", kApproximated, kPinned},
    KeyRule{"lazy_memory_initial_ratio", kApproximated, kPinned},
    KeyRule{"lazy_memory_expand_trigger_ratio", kApproximated, kPinned},
    KeyRule{"lazy_memory_step_ratio", kApproximated, kPinned},
    KeyRule{"lazy_memory_safe_size", kApproximated, kPinned},
    KeyRule{"numa_mode", kApproximated, kPinned},
    KeyRule{"use_gpu_connector_v3", kApproximated, kLayout},
    KeyRule{"enable_blending", kNotModelled, "only prefixes are reused"},
    KeyRule{"blend_recompute_ratio", kNoEffect, kWithBlending},
    KeyRule{"blend_recompute_ratios", kNoEffect, kWithBlending},
    KeyRule{"blend_thresholds", kNoEffect, kWithBlending},
    KeyRule{"blend_check_layers", kNoEffect, kWithBlending},
    KeyRule{"blend_min_tokens", kNoEffect, kWithBlending},
    KeyRule{"blend_special_str", kNoEffect, kWithBlending},
    KeyRule{"enable_hidden_state_cache", kNotModelled, "only KV blocks are kept"},
    KeyRule{"max_hidden_state_cpu_size", kNoEffect, "it counts with enable_hidden_state_cache"},
    KeyRule{"hidden_state_layers", kNoEffect, "it counts with enable_hidden_state_cache"},
    KeyRule{"hidden_states_retrieve_mode", kNoEffect, "it counts with enable_hidden_state_cache"},
    KeyRule{"storage_plugins", kNotModelled, kPlugins},
    KeyRule{"remote_storage_plugins", kNotModelled, kPlugins},
    KeyRule{"external_backends", kNotModelled, kPlugins},
    KeyRule{"runtime_plugin_locations", kNoEffect, kLogs},
    KeyRule{"plugin_locations", kNoEffect, kLogs},
    KeyRule{"script_allowed_imports", kNoEffect, kLogs},
    KeyRule{"run_script_api_enabled", kNoEffect, kLogs},
    KeyRule{"remote_config_url", kNotModelled, "the settings that it answers are not known here"},
    KeyRule{"app_id", kNoEffect, "it counts with remote_config_url"},
    KeyRule{"extra_config.**", kNotModelled, "settings of single storage backends are left out"},
    KeyRule{"extra_config.use_odirect", kApproximated, kStorage},
    KeyRule{"audit_actual_remote_url", kNoEffect, kLogs},
    KeyRule{"internal_api_server_host", kNoEffect, kLogs},
    KeyRule{"internal_api_server_enabled", kNoEffect, kLogs},
    KeyRule{"internal_api_server_port_start", kNoEffect, kLogs},
    KeyRule{"internal_api_server_include_index_list", kNoEffect, kLogs},
    KeyRule{"internal_api_server_socket_path_prefix", kNoEffect, kLogs},
    KeyRule{"enable_chunk_statistics", kNoEffect, kLogs},
    KeyRule{"chunk_statistics_auto_start_statistics", kNoEffect, kLogs},
    KeyRule{"chunk_statistics_auto_exit_timeout_hours", kNoEffect, kLogs},
    KeyRule{"chunk_statistics_auto_exit_target_unique_chunks", kNoEffect, kLogs},
    KeyRule{"chunk_statistics_strategy", kNoEffect, kLogs},
    KeyRule{"error_handling", kNoEffect, kLogs},
    KeyRule{"py_enable_gc", kNoEffect, "it is about the interpreter"},
    KeyRule{"pre_caching_hash_algorithm", kNoEffect, "equal tokens have equal keys here"},
    KeyRule{"mp_host", kNoEffect, kAddresses},
    KeyRule{"mp_port", kNoEffect, kAddresses},
    KeyRule{"use_experimental", kNoEffect, "the engine simulated is V1"},
    KeyRule{"log_level", kNoEffect, kLogs},
    KeyRule{"track_usage", kNoEffect, kLogs},
    KeyRule{"server_service_port", kNoEffect, kAddresses},
};

constexpr KeyTable kLmcacheTable = {
    .format = "LMCache",
    .source =
        "lmcache/v1/config.py, v0.3.5 to v0.5.6; an environment variable has LMCACHE_ before "
        "the name",
    .rules = kLmcacheRules};

constexpr std::array kMooncakeRules = {
    KeyRule{"**", kNotModelled, kUnknown},
    KeyRule{"mode"},
    KeyRule{"global_segment_size"},
    KeyRule{"enable_offload"},
    KeyRule{"metadata_server", kNoEffect, kAddresses},
    KeyRule{"master_server_address", kNoEffect, kAddresses},
    KeyRule{"device_name", kNoEffect, kAddresses},
    KeyRule{"protocol", kApproximated, "the store has the speed of the network"},
    KeyRule{"local_buffer_size", kApproximated, "transfers need no memory of their own"},
};

constexpr KeyTable kMooncakeTable = {
    .format = "Mooncake store",
    .source =
        "vLLM's kv_connector/v1/mooncake/store, v0.21 to v0.33, the file that "
        "MOONCAKE_CONFIG_PATH names",
    .rules = kMooncakeRules};

}  // namespace kv_rules

const KeyTable& tier_connector_keys() { return kv_rules::kTierConnectorTable; }

const KeyTable& server_connector_keys() { return kv_rules::kServerConnectorTable; }

const KeyTable& lmcache_keys() { return kv_rules::kLmcacheTable; }

const KeyTable& mooncake_keys() { return kv_rules::kMooncakeTable; }

}  // namespace routesim::tools
