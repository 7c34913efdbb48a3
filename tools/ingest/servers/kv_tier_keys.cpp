// Which settings of KV connectors there are, and what becomes of each.
#include "tools/ingest/servers/kv_tier_files.h"
#include "tools/ingest/tree/ledger.h"

namespace routesim::tools {

/// A room of its own, as other tables have constants of the same names.
namespace kv_rules {

using enum Fate;

constexpr std::string_view kAddresses = "it is about processes and their addresses";
constexpr std::string_view kUnknown = "no setting of this name is known here";
constexpr std::string_view kLayout = "copies move whole blocks, however they lie in memory";
constexpr std::string_view kStorage = "storage has the speed that disk.gb_per_s says";

constexpr std::string_view kExtra = "kv_connector_extra_config";
constexpr std::string_view kSecondary = "kv_connector_extra_config.secondary_tiers[]";

constexpr KeyGroup kTierConnectorGroups[] = {
    {kUsed, "", "", "kv_connector kv_role kv_load_failure_policy"},
    {kNoEffect, kAddresses, "", "engine_id kv_rank kv_parallel_size kv_ip kv_port"},
    {kNoEffect, "the connector is known by its name", "", "kv_connector_module_path"},
    {kApproximated, kLayout, "", "kv_buffer_device kv_buffer_size enable_permute_local_kv"},
    {kNotModelled, kUnknown, "", "**"},
    {kNotModelled, kUnknown, kExtra, "**"},
    {kUsed, "", kExtra,
     "cpu_bytes_to_use cpu_bytes_to_use_per_rank num_cpu_blocks block_size blocks_per_chunk "
     "eviction_policy offload_prompt_only store_threshold lazy_offload self_describing_kv_events "
     "spec_name shared_storage_path load_async lookup_async save_decode_cache enable_lookup "
     "discard_partial_chunks use_layerwise"},
    {kNotModelled, "store_threshold is not modelled", kExtra, "max_tracker_size"},
    {kNoEffect, "the spec is known by its name", kExtra, "spec_module_path"},
    {kUsed, "", kSecondary,
     "type root_dir n_read_threads n_write_threads port store_config.bucket"},
    {kNoEffect, kAddresses, kSecondary, "host prefix store_config.**"},
    {kNoEffect, "routers do not read where the storage stands", kSecondary, "locality"},
    {kApproximated, "pulls have the speed of the network", kSecondary, "backends num_threads"},
    {kNotModelled, "the router hears of GPU and host memory only", kSecondary, "enable_kv_events"},
    {kNotModelled, kUnknown, kSecondary, "**"},
    {kApproximated, kStorage, kExtra, "threads_per_gpu max_staging_memory_gb gds_mode"},
    {kNotModelled, "every load lets other requests go on", kExtra, "sync_load_budget_bytes"},
    {kNotModelled, "the end of a copy is seen once per step", kExtra, "tier_poll_interval_s"},
    {kNotModelled, "stores wait for nothing but memory", kExtra, "backpressure"},
    {kApproximated, kLayout, kExtra,
     "canonical_layout prefer_cross_layer_blocks enable_cross_layers_blocks"},
    {kNotModelled, "a store has no places of its own", kExtra, "preferred_segment"},
    {kNoEffect, kAddresses, kExtra,
     "lookup_rpc_port mooncake_rpc_port lmcache_rpc_port lmcache.mp.**"},
};

constexpr KeyGroup kServerConnectorGroups[] = {
    {kApproximated, "transfers cost what cluster.transfer says", "", "**"},
    {kUsed, "", "", "kv_connector kv_load_failure_policy"},
    {kNoEffect, "the pool's role says it", "", "kv_role"},
    {kNoEffect, kAddresses, "", "engine_id kv_rank kv_parallel_size kv_ip kv_port"},
    {kNoEffect, "the connector is known by its name", "", "kv_connector_module_path"},
};

constexpr KeyGroup kLmcacheGroups[] = {
    {kNotModelled, kUnknown, "", "**"},
    {kUsed, "", "",
     "config_file chunk_size local_cpu max_local_cpu_size local_disk max_local_disk_size "
     "remote_url cache_policy use_layerwise save_decode_cache save_unfull_chunk "
     "enable_async_loading min_retrieve_tokens"},
    {kNotModelled, "the host has the memory that is asked for", "", "reserve_local_cpu_size"},
    {kApproximated, "blocks have the size of the KV cache everywhere", "", "remote_serde"},
    {kNoEffect, "the router hears of blocks as routing.kv_event_delay says", "",
     "enable_kv_events"},
    {kNotModelled, "every tier is looked up", "", "retrieve_locations"},
    {kNotModelled, "every tier is stored to", "", "store_location"},
    {kNotModelled, "requests of every priority are stored", "", "priority_limit"},
    {kNotModelled, "code from elsewhere is not simulated", "",
     "external_lookup_client storage_plugins remote_storage_plugins external_backends"},
    {kNotModelled, "the hits are those that are found", "", "hit_miss_ratio"},
    {kApproximated, "an answer takes no time", "", "enable_scheduler_bypass_lookup"},
    {kNoEffect, kAddresses, "",
     "lookup_server_worker_ids lmcache_instance_id controller_url controller_pull_url "
     "controller_reply_url lmcache_worker_port lmcache_worker_ports lmcache_worker_ids "
     "lmcache_worker_heartbeat_delay_time lmcache_worker_heartbeat_time mp_host mp_port "
     "server_service_port"},
    {kApproximated, "loads never time out here", "",
     "lookup_timeout_ms blocking_timeout_secs pin_timeout_sec pin_check_interval_sec"},
    {kNotModelled, "a server loads from its own tiers only", "", "enable_p2p"},
    {kNoEffect, "it counts with enable_p2p", "",
     "p2p_host p2p_init_ports p2p_lookup_ports transfer_channel"},
    {kNotModelled, "LMCache's controller is not simulated", "",
     "distributed_url lookup_url enable_controller"},
    {kNotModelled, "transfers between servers are cluster.transfer's", "",
     "enable_pd enable_xpyd enable_nixl"},
    {kNoEffect, "it counts with enable_pd or enable_nixl", "",
     "pd_role pd_buffer_size pd_buffer_device pd_peer_host pd_peer_init_port pd_peer_alloc_port "
     "pd_peer_query_port pd_proxy_host pd_proxy_port pd_allocation_timeout_sec "
     "pd_shutdown_timeout_sec pd_condition_poll_interval_sec pd_max_prefill_len pd_backend_mode "
     "pd_skip_proxy_notification pd_bidirectional nixl_role nixl_peer_host nixl_peer_port "
     "nixl_peer_init_port nixl_peer_alloc_port nixl_proxy_host nixl_proxy_port nixl_receiver_host "
     "nixl_receiver_port nixl_buffer_size nixl_buffer_device nixl_enable_gc nixl_backends"},
    {kNotModelled, "there is no tier below host memory", "", "gds_path weka_path"},
    {kNoEffect, "it counts with gds_path or weka_path", "",
     "gds_path_sharding gds_buffer_size gds_backend cufile_buffer_size use_gds"},
    {kNotModelled, "there is no shared memory between hosts", "", "maru_path"},
    {kNoEffect, "it counts with maru_path", "", "maru_pool_size"},
    {kNoEffect, "a GPU's blocks lie in one place here", "", "local_disk_path_sharding"},
    {kApproximated, "memory is there from the start, and pinned", "",
     "local_cpu_use_hugepages enable_lazy_memory_allocator lazy_memory_initial_ratio "
     "lazy_memory_expand_trigger_ratio lazy_memory_step_ratio lazy_memory_safe_size numa_mode"},
    {kApproximated, kLayout, "", "use_gpu_connector_v3"},
    {kNotModelled, "only prefixes are reused", "", "enable_blending"},
    {kNoEffect, "it counts with enable_blending", "",
     "blend_recompute_ratio blend_recompute_ratios blend_thresholds blend_check_layers "
     "blend_min_tokens blend_special_str"},
    {kNotModelled, "only KV blocks are kept", "", "enable_hidden_state_cache"},
    {kNoEffect, "it counts with enable_hidden_state_cache", "",
     "max_hidden_state_cpu_size hidden_state_layers hidden_states_retrieve_mode"},
    {kNoEffect, "it is about logs, metrics or profiles", "",
     "runtime_plugin_locations plugin_locations script_allowed_imports run_script_api_enabled "
     "audit_actual_remote_url internal_api_server_host internal_api_server_enabled "
     "internal_api_server_port_start internal_api_server_include_index_list "
     "internal_api_server_socket_path_prefix enable_chunk_statistics "
     "chunk_statistics_auto_start_statistics chunk_statistics_auto_exit_timeout_hours "
     "chunk_statistics_auto_exit_target_unique_chunks chunk_statistics_strategy error_handling "
     "log_level track_usage"},
    {kNotModelled, "the settings that it answers are not known here", "", "remote_config_url"},
    {kNoEffect, "it counts with remote_config_url", "", "app_id"},
    {kNotModelled, "settings of single storage backends are left out", "", "extra_config.**"},
    {kApproximated, kStorage, "", "extra_config.use_odirect"},
    {kNoEffect, "it is about the interpreter", "", "py_enable_gc"},
    {kNoEffect, "equal tokens have equal keys here", "", "pre_caching_hash_algorithm"},
    {kNoEffect, "the engine simulated is V1", "", "use_experimental"},
};

constexpr KeyGroup kMooncakeGroups[] = {
    {kNotModelled, kUnknown, "", "**"},
    {kUsed, "", "", "mode global_segment_size enable_offload"},
    {kNoEffect, kAddresses, "", "metadata_server master_server_address device_name"},
    {kApproximated, "the store has the speed of the network", "", "protocol"},
    {kApproximated, "transfers need no memory of their own", "", "local_buffer_size"},
};

}  // namespace kv_rules

const KeyTable& tier_connector_keys() {
  static const GroupedTable kTable(
      kTransferFormat, "vllm/config/kv_transfer.py and the connectors that keep KV, v0.11 to v0.33",
      kv_rules::kTierConnectorGroups);
  return kTable.table();
}

const KeyTable& server_connector_keys() {
  static const GroupedTable kTable(
      "kv-transfer-config between servers",
      "vllm/config/kv_transfer.py and NixlConnector with its relatives, v0.11 to v0.33",
      kv_rules::kServerConnectorGroups);
  return kTable.table();
}

const KeyTable& lmcache_keys() {
  static const GroupedTable kTable(
      "LMCache",
      "lmcache/v1/config.py, v0.3.5 to v0.5.6; an environment variable has LMCACHE_ before "
      "the name",
      kv_rules::kLmcacheGroups);
  return kTable.table();
}

const KeyTable& mooncake_keys() {
  static const GroupedTable kTable(
      "Mooncake store",
      "vLLM's kv_connector/v1/mooncake/store, v0.21 to v0.33, the file that "
      "MOONCAKE_CONFIG_PATH names",
      kv_rules::kMooncakeGroups);
  return kTable.table();
}

}  // namespace routesim::tools
