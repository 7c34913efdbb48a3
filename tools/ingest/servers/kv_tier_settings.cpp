#include "tools/ingest/servers/kv_tier_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/servers/kv_tier_files.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"

namespace routesim::tools {

bool is_true(const ConfigNode& node) {
  const std::string text = lower_case(node.text());
  return text == "true" || text == "1";
}

std::string shown_number(double value) { return fmt::format("{}", value); }

void TierKeys::set(std::string_view key, const std::string& text, const SourceLocation& where) {
  // The size of the whole engine goes before what its workers have each.
  const auto same = [&](const auto& entry) {
    return entry.first == key || (entry.first == "cpu_gib" && key == "cpu_gib_per_gpu");
  };
  if (std::none_of(keys_.begin(), keys_.end(), same)) keys_.emplace_back(key, untyped(text, where));
}

void TierKeys::set_flag(std::string_view key, bool on, const SourceLocation& where) {
  set(key, on ? "true" : "false", where);
}

void TierKeys::set_map(const std::string& key, const SourceLocation& where) {
  keys_.emplace_back(key, ConfigNode::make_map({}, where));
}

Ptr TierKeys::node() const {
  std::vector<Member> members;
  for (const auto& [key, value] : keys_) {
    const std::size_t dot = key.find('.');
    const std::string name = key.substr(0, dot);
    const auto same = [&](const Member& member) { return member.key == name; };
    if (dot == std::string::npos) {
      members.push_back({name, value->where(), value});
    } else if (std::none_of(members.begin(), members.end(), same)) {
      members.push_back({name, value->where(), below(name, value->where())});
    }
  }
  return members.empty() ? nullptr : ConfigNode::make_map(members, members.front().key_where);
}

Ptr TierKeys::below(const std::string& name, const SourceLocation& where) const {
  std::vector<Member> members;
  for (const auto& [key, value] : keys_)
    if (key.starts_with(name + "."))
      members.push_back({key.substr(name.size() + 1), value->where(), value});
  return ConfigNode::make_map(std::move(members), where);
}

const ConfigNode* Settings::find(std::string_view name) const {
  const ConfigNode* node = map_.child(name);
  return node != nullptr && node->is_scalar() && !node->text().empty() ? node : nullptr;
}

void Settings::copy(std::string_view name, std::string_view key) const {
  if (const ConfigNode* node = find(name)) keys_.set(key, node->text(), node->where());
}

void Settings::copy_flag(std::string_view name, std::string_view key, bool negated) const {
  if (const ConfigNode* node = find(name))
    keys_.set_flag(key, is_true(*node) != negated, node->where());
}

void Settings::copy_bytes(std::string_view name, std::string_view key) const {
  const ConfigNode* node = find(name);
  if (node == nullptr) return;
  const std::optional<double> bytes = number_from(node->text());
  if (bytes && *bytes >= 0)
    return keys_.set(key, shown_number(*bytes / kBytesPerGib), node->where());
  diagnostics_.error(
      node->where(), path_ + "." + std::string(name),
      "must be a number (got " + in_quotes(node->text()) + ")",
      "write its value out, or engine.kv_tiers." + std::string(key) + " into the pool");
}

void Settings::copy_lower_case(std::string_view name, std::string_view key) const {
  if (const ConfigNode* node = find(name)) keys_.set(key, lower_case(node->text()), node->where());
}

void Settings::not_modelled(std::string_view name, const std::string& why) const {
  if (const ConfigNode* node = map_.child(name))
    diagnostics_.warning(node->where(), path_ + "." + std::string(name), "is not modelled: " + why);
}

namespace {

/// LMCache's local_disk, one folder or several, without the scheme of each.
std::string folders(std::string text) {
  constexpr std::string_view kScheme = "file://";
  for (std::size_t at = text.find(kScheme); at != std::string::npos; at = text.find(kScheme))
    text.erase(at, kScheme.size());
  return text;
}

/// The number of an LMCache setting. What is none leaves the default, with a warning, as there.
const ConfigNode* lmcache_number(const ConfigNode& map, const std::string& path,
                                 std::string_view name, Diagnostics& diagnostics) {
  const ConfigNode* node = map.child(name);
  if (node == nullptr || node->is_null()) return nullptr;
  if (node->is_scalar() && number_from(node->text())) return node;
  diagnostics.warning(node->where(), path + "." + std::string(name),
                      "is no number (" + got(*node) + "), so that LMCache takes its default");
  return nullptr;
}

}  // namespace

void read_lmcache(const ConfigNode& map, const std::string& path, TierKeys& keys,
                  Diagnostics& diagnostics) {
  note_keys(map, path, key_table("LMCache"), nullptr, diagnostics);
  const Settings settings(map, path, keys, diagnostics);
  const auto copy_number = [&](std::string_view name, std::string_view key) {
    if (const ConfigNode* node = lmcache_number(map, path, name, diagnostics))
      keys.set(key, node->text(), node->where());
  };
  const ConfigNode* cpu = settings.find("local_cpu");
  if (cpu != nullptr && !is_true(*cpu)) keys.set("cpu_gib_per_gpu", "0", cpu->where());
  copy_number("max_local_cpu_size", "cpu_gib_per_gpu");
  copy_number("chunk_size", "chunk_tokens");
  if (const ConfigNode* disk = settings.find("local_disk");
      disk != nullptr && lower_case(disk->text()) != "false") {
    keys.set("disk.root", folders(disk->text()), disk->where());
    copy_number("max_local_disk_size", "disk.gib_per_gpu");
  }
  settings.copy_flag("save_decode_cache", "prompt_only", true);
  settings.copy_flag("save_unfull_chunk", "partial_chunks");
  settings.copy_flag("use_layerwise", "layerwise");
  settings.copy_flag("enable_async_loading", "blocking_loads", true);
  copy_number("min_retrieve_tokens", "min_hit_tokens");
  settings.copy_lower_case("cache_policy", "eviction");
  settings.copy("remote_url", "remote.url");
}

}  // namespace routesim::tools
