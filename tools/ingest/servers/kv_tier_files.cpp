#include "tools/ingest/servers/kv_tier_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/servers/kv_tier_settings.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

struct Connector {
  std::string_view name;
  sim::KvConnector tier;
};

/// Names as in vllm/distributed/kv_transfer/kv_connector/factory.py.
constexpr std::array kTierConnectors = {
    Connector{"OffloadingConnector", sim::KvConnector::kOffloading},
    Connector{"SimpleCPUOffloadConnector", sim::KvConnector::kSimpleCpu},
    Connector{"LMCacheConnectorV1", sim::KvConnector::kLmcache},
    Connector{"LMCacheConnector", sim::KvConnector::kLmcache},
    Connector{"LMCacheConnectorV1Dynamic", sim::KvConnector::kLmcache},
    Connector{"LMCacheMPConnector", sim::KvConnector::kLmcacheMp},
    Connector{"MooncakeStoreConnector", sim::KvConnector::kMooncakeStore},
};

constexpr std::string_view kServerConnectors =
    "NixlConnector NixlPullConnector NixlPushConnector MoRIIOConnector MooncakeConnector "
    "P2pNcclConnector TPUConnector";

const Connector* tier_connector(std::string_view name) {
  const auto* const at = std::ranges::find(kTierConnectors, name, &Connector::name);
  return at == kTierConnectors.end() ? nullptr : at;
}

/// The same map with the value of `key` replaced, or added.
Ptr with_member(const Ptr& map, const std::string& key, const Ptr& value) {
  Members members = map->members();
  put_member(members, {key, value->where(), value});
  return ConfigNode::make_map(std::move(members), map->where());
}

/// Reads the sources of one server.
class TierReader {
 public:
  TierReader(const TierSources& sources, const std::string& key_path, Diagnostics& diagnostics)
      : sources_(sources), key_path_(key_path), diagnostics_(diagnostics) {}

  Ptr read() {
    const Ptr config = with_offloading_flags(transfer_config());
    if (config != nullptr) visit(config, key_path_ + ".kv-transfer-config");
    if (policy_ != nullptr && policy_->text() != "fail") say_policy();
    return keys_.node();
  }

 private:
  void error(const SourceLocation& where, const std::string& path, const std::string& what,
             const std::string& hint) {
    diagnostics_.error(where, path, what, hint);
  }

  /// The map of --kv-transfer-config, every value at the flag's place; null without the flag.
  Ptr transfer_config() {
    if (sources_.transfer == nullptr) return nullptr;
    const ShellWord& word = sources_.transfer->value;
    Diagnostics unread;
    const Ptr config = parse_config(word.text, {.file = word.where.file}, unread);
    if (config != nullptr && config->is_map() && !unread.has_errors())
      return moved_to(config, word.where);
    error(word.where, key_path_,
          "--kv-transfer-config is no JSON (got " + in_quotes(word.text) + ")",
          "put it into single quotes");
    return nullptr;
  }

  const ShellWord* variable(const std::string& name) const {
    const auto at = sources_.environment.find(name);
    return at == sources_.environment.end() ? nullptr : &at->second;
  }

  /// --kv-offloading-size replaces the connector (vllm/config/vllm.py,
  /// _post_init_kv_transfer_config).
  Ptr with_offloading_flags(Ptr config) {
    if (sources_.size == nullptr) return config;
    const ShellWord& size = sources_.size->value;
    const std::string written = lower_case(size.text);
    if (written == "none" || written == "null" || written == "0") return config;
    const std::optional<double> gib = number_from(size.text);
    if (!gib || *gib < 0 || !size.unknown.empty()) {
      error(size.where, key_path_,
            "--kv-offloading-size must be a number (got " + in_quotes(size.text) + ")",
            "write its value out, or engine.kv_tiers.cpu_gib into the pool");
      return config;
    }
    const std::string backend =
        sources_.backend == nullptr ? "native" : sources_.backend->value.text;
    if (backend != "native" && backend != "lmcache") {
      error(sources_.backend->value.where, key_path_,
            "--kv-offloading-backend must be native or lmcache (got " + in_quotes(backend) + ")",
            {});
      return config;
    }
    if (config == nullptr) config = ConfigNode::make_map({}, size.where);
    if (const ConfigNode* named = config->child("kv_connector"); named != nullptr)
      diagnostics_.warning(
          named->where(), key_path_ + ".kv-transfer-config.kv_connector",
          "is replaced, as --kv-offloading-size is given too (" + got(*named) + ")");
    const bool is_server = backend == "lmcache" && sources_.lmcache_is_server;
    if (!is_server) keys_.set("cpu_gib", size.text, size.where);
    const ShellWord* simple = variable("VLLM_USE_SIMPLE_KV_OFFLOAD");
    const std::string connector = is_server              ? "LMCacheMPConnector"
                                  : backend == "lmcache" ? "LMCacheConnectorV1"
                                  : simple != nullptr && simple->text == "1"
                                      ? "SimpleCPUOffloadConnector"
                                      : "OffloadingConnector";
    return with_member(config, "kv_connector", plain(connector, size.where));
  }

  void visit(const Ptr& config, const std::string& path) {
    const ConfigNode* named = config->child("kv_connector");
    if (named == nullptr || !named->is_scalar())
      return error(config->where(), path, "names no kv_connector", {});
    const std::string& name = named->text();
    if (const ConfigNode* policy = config->child("kv_load_failure_policy"))
      if (policy->is_scalar()) policy_ = policy;
    if (name == "MultiConnector") return visit_several(*config, path);
    if (has_word(kServerConnectors, name)) {
      has_server_connector_ = true;
      return note_keys(*config, path, key_table("kv-transfer-config between servers"), nullptr,
                       diagnostics_);
    }
    const Connector* tier = tier_connector(name);
    if (tier == nullptr)
      return error(named->where(), key_path_,
                   "the KV connector " + printable(name) +
                       " keeps KV outside the GPU's memory, which is not simulated",
                   "leave the connector out to simulate the servers without it");
    if (!tier_name_.empty())
      return error(named->where(), key_path_,
                   "the KV connectors " + printable(tier_name_) + " and " + printable(name) +
                       " both keep KV; one of them is simulated",
                   "leave one of the two out");
    tier_name_ = name;
    read_tier(*tier, config, path);
  }

  void visit_several(const ConfigNode& config, const std::string& path) {
    const ConfigNode* list = node_at(config, {"kv_connector_extra_config", "connectors"});
    note_keys(config, path, key_table("kv-transfer-config between servers"), list, diagnostics_);
    if (list == nullptr || !list->is_sequence()) return;
    const std::string below = path + ".kv_connector_extra_config.connectors";
    for (std::size_t i = 0; i < list->items().size(); ++i)
      if (list->items()[i]->is_map()) visit(list->items()[i], element_path(below, i));
  }

  void read_tier(const Connector& tier, const Ptr& config, const std::string& path) {
    const ConfigNode* given = config->child("kv_connector_extra_config");
    const Ptr none = ConfigNode::make_map({}, config->where());
    const ConfigNode& extra = given != nullptr && given->is_map() ? *given : *none;
    const SourceLocation& where = config->child("kv_connector")->where();
    sim::KvConnector kind = tier.tier;
    if (kind == sim::KvConnector::kOffloading) kind = with_spec(extra, path);
    keys_.set("connector", std::string(enum_name(kind)), where);
    const bool is_lmcache = kind == sim::KvConnector::kLmcache;
    note_keys(*(is_lmcache ? without_settings(config, extra) : config), path,
              key_table(kTransferFormat), nullptr, diagnostics_);
    const Settings settings(extra, path + ".kv_connector_extra_config", keys_, diagnostics_);
    read_role(*config, kind);
    if (is_lmcache) {
      // LMCache's adapter reads these two from the connector, not from its own settings.
      settings.copy_flag("use_layerwise", "layerwise");
      settings.copy_flag("discard_partial_chunks", "partial_chunks", true);
      return read_lmcache(*lmcache_settings(extra), key_path_ + ".lmcache", keys_, diagnostics_);
    }
    if (kind == sim::KvConnector::kMooncakeStore) return read_mooncake(settings);
    read_native(settings, extra, path + ".kv_connector_extra_config");
  }

  /// The offloading spec decides where OffloadingConnector keeps blocks.
  sim::KvConnector with_spec(const ConfigNode& extra, const std::string& path) {
    const ConfigNode* spec = extra.child("spec_name");
    const std::string name = spec == nullptr ? "CPUOffloadingSpec" : spec->text();
    if (name == "SharedStorageOffloadingSpec") return sim::KvConnector::kLlmdFs;
    if (name != "CPUOffloadingSpec" && name != "TieringOffloadingSpec")
      error(spec->where(), path + ".kv_connector_extra_config.spec_name",
            "is not known here (got " + in_quotes(name) + ")",
            "known specs: CPUOffloadingSpec, TieringOffloadingSpec, SharedStorageOffloadingSpec");
    return sim::KvConnector::kOffloading;
  }

  /// OffloadingConnector stores and loads whatever its role says.
  void read_role(const ConfigNode& config, sim::KvConnector kind) {
    const ConfigNode* role = config.child("kv_role");
    if (role == nullptr || !role->is_scalar()) return;
    const bool heeds =
        kind == sim::KvConnector::kLmcache || kind == sim::KvConnector::kMooncakeStore;
    if (!heeds || role->text() == "kv_both") return;
    const std::string& text = role->text();
    keys_.set("role", text.starts_with("kv_") ? text.substr(3) : text, role->where());
  }

  /// CPU memory, files and pulls of vLLM's own connectors (vllm/v1/kv_offload).
  void read_native(const Settings& settings, const ConfigNode& extra, const std::string& path) {
    settings.copy_bytes("cpu_bytes_to_use", "cpu_gib");
    settings.copy_bytes("cpu_bytes_to_use_per_rank", "cpu_gib_per_gpu");
    settings.copy("num_cpu_blocks", "cpu_chunks");
    settings.copy("block_size", "chunk_tokens");
    settings.copy("blocks_per_chunk", "chunk_blocks");
    settings.copy_lower_case("eviction_policy", "eviction");
    settings.copy_flag("offload_prompt_only", "prompt_only");
    const ConfigNode* threshold = settings.find("store_threshold");
    if (threshold != nullptr && number_from(threshold->text()).value_or(2) >= 2)  // Less: off.
      settings.copy("store_threshold", "store_threshold");
    settings.copy_flag("lazy_offload", "lazy");
    settings.copy_flag("self_describing_kv_events", "self_describing_events");
    settings.copy("shared_storage_path", "disk.root");
    const std::vector<Ptr>& tiers = items_at(extra, {"secondary_tiers"});
    std::set<std::string> seen;
    for (std::size_t i = 0; i < tiers.size(); ++i)
      read_secondary(*tiers[i], element_path(path + ".secondary_tiers", i), seen);
  }

  void read_secondary(const ConfigNode& tier, const std::string& path,
                      std::set<std::string>& seen) {
    if (!tier.is_map()) return error(tier.where(), path, "must be a map (" + got(tier) + ")", {});
    const ConfigNode* named = tier.child("type");
    std::string type = named != nullptr ? named->text() : std::string();
    if (type == "fs_python") type = "fs";  // Its name before v0.22's release.
    const Settings settings(tier, path, keys_, diagnostics_);
    if (!seen.insert(type).second)
      return settings.not_modelled("type", "one tier of each type is read");
    if (type == "fs") {
      settings.copy("root_dir", "disk.root");
      settings.copy("n_read_threads", "disk.read_threads");
      settings.copy("n_write_threads", "disk.write_threads");
      if (tier.child("root_dir") == nullptr)
        error(tier.where(), path + ".root_dir", "is missing", "the folder of the tier's files");
    } else if (type == "p2p") {
      keys_.set("pulls.port", settings.find("port") ? settings.find("port")->text() : pull_port(),
                tier.where());
    } else if (type == "obj") {
      keys_.set("remote.url", "obj://" + text_at(tier, {"store_config", "bucket"}), tier.where());
    } else if (named != nullptr) {
      settings.not_modelled("type", "tiers of type " + printable(type) + " are left out");
    } else {
      error(tier.where(), path + ".type", "is missing", "write fs, obj or p2p");
    }
  }

  /// The port of a p2p tier that names none.
  std::string pull_port() const {
    const ShellWord* port = variable("VLLM_P2P_SIDE_CHANNEL_PORT");
    return port != nullptr && port->unknown.empty() ? port->text : "5710";
  }

  /// The text of a file that a variable of the environment names; null, with a warning, when it is
  /// not at hand.
  Ptr file_of(const std::string& name) {
    const ShellWord* path = variable(name);
    if (path == nullptr || path->text.empty()) return nullptr;
    if (const auto at = sources_.files.find(std::string(last_part(path->text)));
        at != sources_.files.end())
      return at->second->is_scalar() ? parse_embedded(*at->second, diagnostics_) : at->second;
    const std::string file = resolve_path(path->text, path->where);
    std::error_code unreadable;
    if (path->unknown.empty() && std::filesystem::is_regular_file(file, unreadable))
      return read_config_file(file, diagnostics_);
    diagnostics_.warning(path->where, key_path_,
                         name + " names " + printable(path->text) +
                             ", which no ConfigMap of this file holds; its settings are not known",
                         "put all objects into one file, as kubectl kustomize prints them, or "
                         "write engine.kv_tiers into the pool");
    return nullptr;
  }

  /// The connector without LMCache's own settings, which have a table of their own.
  static Ptr without_settings(const Ptr& config, const ConfigNode& extra) {
    Members rest = extra.members();
    std::erase_if(rest, [](const Member& member) { return is_lmcache_setting(member.key); });
    if (rest.size() == extra.members().size()) return config;
    return with_member(config, "kv_connector_extra_config",
                       ConfigNode::make_map(std::move(rest), extra.where()));
  }

  static bool is_lmcache_setting(const std::string& key) { return key.starts_with("lmcache."); }

  /// LMCache's settings from its file, over it the environment, over both the connector's
  /// (load_config_with_overrides in lmcache/v1/config_base.py).
  Ptr lmcache_settings(const ConfigNode& extra) {
    Members own, environment;
    for (const Member& member : extra.members())
      if (is_lmcache_setting(member.key))
        own.push_back({member.key.substr(std::string_view("lmcache.").size()), member.key_where,
                       member.value});
    constexpr std::string_view kPrefix = "LMCACHE_";
    for (const auto& [name, word] : sources_.environment)
      if (name.starts_with(kPrefix)) add_variable(name.substr(kPrefix.size()), word, environment);
    const Ptr file = file_of("LMCACHE_CONFIG_FILE");
    Ptr all = ConfigNode::make_map(std::move(environment), extra.where());
    if (file != nullptr && file->is_map()) all = merge_configs(file, all);
    return merge_configs(all, ConfigNode::make_map(std::move(own), extra.where()));
  }

  void add_variable(const std::string& name, const ShellWord& word, Members& members) {
    if (!word.unknown.empty()) {
      diagnostics_.warning(word.where, key_path_,
                           "LMCACHE_" + name + " depends on " + printable(word.unknown) +
                               ", which is not known here; it is left out",
                           "write its value out");
      return;
    }
    Ptr value = plain(word.text, word.where);
    if (word.text.starts_with("{")) {
      Diagnostics unread;
      const Ptr map = parse_config(word.text, {.file = word.where.file}, unread);
      if (map != nullptr && !unread.has_errors()) value = moved_to(map, word.where);
    }
    members.push_back({lower_case(name), word.where, value});
  }

  /// A store that the whole cluster shares; its file says what each rank gives to it.
  void read_mooncake(const Settings& settings) {
    settings.copy_flag("load_async", "blocking_loads", true);
    settings.copy_flag("lookup_async", "async_lookup");
    settings.copy_flag("save_decode_cache", "prompt_only", true);
    const ConfigNode* lookup = settings.find("enable_lookup");
    if (lookup != nullptr && !is_true(*lookup))
      settings.not_modelled("enable_lookup", "every request is looked up");
    for (const char* name :
         {"VLLM_MOONCAKE_LOAD_RECV_THREADS", "VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO"})
      if (const ShellWord* word = variable(name))
        diagnostics_.warning(
            word->where, key_path_,
            std::string(name) + " is not modelled: loads have the speed of their links");
    const Ptr file = file_of("MOONCAKE_CONFIG_PATH");
    if (file == nullptr || !file->is_map()) return;
    const std::string path = key_path_ + ".mooncake";
    note_keys(*file, path, key_table("Mooncake store"), nullptr, diagnostics_);
    const Settings store(*file, path, keys_, diagnostics_);
    const ConfigNode* mode = store.find("mode");
    if (mode != nullptr && mode->text() == "standalone-store") {
      keys_.set("cpu_gib_per_gpu", "0", mode->where());
      diagnostics_.warning(mode->where(), path + ".mode",
                           "leaves the size of the store to a process of its own",
                           "write engine.kv_tiers.cpu_gib into the pool, the memory of the store");
    } else if (const ConfigNode* size = store.find("global_segment_size")) {
      use_segment(*size, path + ".global_segment_size");
    }
    if (const ConfigNode* disk = store.find("enable_offload"); disk != nullptr && is_true(*disk))
      keys_.set_map("disk", disk->where());
  }

  /// `80GB` are 80 GiB (_parse_size in mooncake/store/worker.py).
  void use_segment(const ConfigNode& size, const std::string& path) {
    std::string text = lower_case(size.text());
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    double unit = 1;
    constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
        {{"gb", kBytesPerGib}, {"mb", kBytesPerGib / 1024}, {"kb", 1024}, {"b", 1}}};
    for (const auto& [name, bytes] : kUnits)
      if (text.ends_with(name)) {
        unit = bytes;
        text.erase(text.size() - name.size());
        break;
      }
    const std::optional<double> number = number_from(text);
    if (!number || *number < 0)
      return error(size.where(), path, "must be a size such as 80GB (" + got(size) + ")", {});
    keys_.set("cpu_gib_per_gpu", shown_number(*number * unit / kBytesPerGib), size.where());
  }

  /// Loads fail where servers or stores are lost. Host memory of one's own is never lost.
  void say_policy() {
    const std::string text = policy_->text();
    if (has_server_connector_ || tier_name_ == "MooncakeStoreConnector")
      diagnostics_.warning(
          policy_->where(), key_path_,
          "kv_load_failure_policy belongs to the whole cluster here (got " + in_quotes(text) + ")",
          "write cluster.transfer.load_failure: " + printable(text));
    else if (!tier_name_.empty() && tier_name_ != "OffloadingConnector")
      diagnostics_.warning(policy_->where(), key_path_,
                           "kv_load_failure_policy is not modelled: loads from tiers never fail");
  }

  const TierSources& sources_;
  const std::string& key_path_;
  Diagnostics& diagnostics_;
  TierKeys keys_;
  std::string tier_name_;  ///< The connector that keeps KV; empty without one.
  bool has_server_connector_ = false;
  const ConfigNode* policy_ = nullptr;
};

}  // namespace

Ptr tiers_of(const TierSources& sources, const std::string& key_path, Diagnostics& diagnostics) {
  return TierReader(sources, key_path, diagnostics).read();
}

Ptr without_lmcache_config(const Ptr& pool, const std::string& path, Diagnostics& diagnostics) {
  constexpr std::string_view kKey = "lmcache_config";
  const Ptr given = value_at(*pool, {"engine", "kv_tiers", kKey});
  if (given == nullptr) return pool;
  const std::string key_path = path + ".engine.kv_tiers." + std::string(kKey);
  Ptr settings = given;
  if (given->is_scalar())
    settings = read_config_file(resolve_path(given->text(), given->where()), diagnostics);
  TierKeys keys;
  keys.set("connector", "lmcache", given->where());
  if (settings != nullptr && settings->is_map())
    read_lmcache(*settings, key_path, keys, diagnostics);
  else if (settings != nullptr && !settings->is_null())
    diagnostics.error(
        settings->where(), key_path,
        "must be LMCache's settings or the path of their file (" + got(*settings) + ")");
  return change_member(pool, "engine", [&](const Ptr& engine) {
    return change_member(engine, "kv_tiers", [&](const Ptr& tiers) {
      return merge_configs(keys.node(), without_key(tiers, kKey));
    });
  });
}

void warn_of_left_out_tiers(sim::Scenario& scenario, const Provenance& provenance,
                            Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < scenario.cluster.pools.size(); ++i) {
    std::optional<sim::KvTierConfig>& tiers = scenario.cluster.pools[i].engine.kv_tiers;
    if (!tiers) continue;
    const std::string path = element_path("cluster.pools", i) + ".engine.kv_tiers.";
    for (const FieldDescription& key :
         describe_values([&](Describer& d) { describe(d, *tiers); }).members) {
      const SourceLocation* place = provenance.find(path + key.name);
      const bool is_off = !key.engaged || key.value == "false" || key.value == "0";
      if (key.fate == Fate::kNotModelled && place != nullptr && !is_off)
        diagnostics.warning(*place, path + key.name, "is not modelled: " + std::string(key.why));
    }
  }
}

}  // namespace routesim::tools
