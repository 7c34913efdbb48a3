// The keys of `engine.kv_tiers` while readers collect them, and the settings they come from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "base/diagnostic.h"

namespace routesim::tools {

inline constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

/// Whether a setting is on, as Python's readers of text have it.
bool is_true(const ConfigNode& node);

/// The shortest text that reads back as this number.
std::string shown_number(double value);

/// Collects the keys of `engine.kv_tiers`. Where a key is set twice, the first value stays.
class TierKeys {
 public:
  /// `key` may name a key of a map below: `disk.root`.
  void set(std::string_view key, const std::string& text, const SourceLocation& where);
  void set_flag(std::string_view key, bool on, const SourceLocation& where);
  /// A map of which nothing more is known.
  void set_map(const std::string& key, const SourceLocation& where);

  /// The map of all keys; null without any.
  ConfigNode::Ptr node() const;

 private:
  ConfigNode::Ptr below(const std::string& name, const SourceLocation& where) const;

  std::vector<std::pair<std::string, ConfigNode::Ptr>> keys_;
};

/// Puts the values of one map of settings into tier keys.
class Settings {
 public:
  Settings(const ConfigNode& map, std::string path, TierKeys& keys, Diagnostics& diagnostics)
      : map_(map), path_(std::move(path)), keys_(keys), diagnostics_(diagnostics) {}

  /// The setting's value where it has one; null otherwise.
  const ConfigNode* find(std::string_view name) const;
  void copy(std::string_view name, std::string_view key) const;
  void copy_flag(std::string_view name, std::string_view key, bool negated = false) const;
  /// Bytes become GiB. What is no number is an error.
  void copy_bytes(std::string_view name, std::string_view key) const;
  void copy_lower_case(std::string_view name, std::string_view key) const;
  /// Warns of a setting that stands there.
  void not_modelled(std::string_view name, const std::string& why) const;

 private:
  const ConfigNode& map_;
  std::string path_;
  TierKeys& keys_;
  Diagnostics& diagnostics_;
};

/// Reads LMCache's settings (lmcache/v1/config.py), each under its name in the file. A number that
/// is none leaves LMCache's default, with a warning, as LMCache does.
void read_lmcache(const ConfigNode& map, const std::string& path, TierKeys& keys,
                  Diagnostics& diagnostics);

}  // namespace routesim::tools
