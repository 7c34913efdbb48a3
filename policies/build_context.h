// The context in which the plugins of one scheduler are built: what a plugin constructor may ask
// for, and the set that takes the plugins. A plugin includes this header, which brings the base
// classes, `describe`, and the standard headers that nearly every plugin needs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "policies/index/approx_prefix_index.h"
#include "policies/index/precise_store.h"
#include "policies/latency_predictor.h"
#include "policies/parameters.h"
#include "policies/plugin_registry.h"
#include "policies/requirements.h"

namespace routesim::policies {

struct NoParameters {};
inline void describe(Describer&, NoParameters&) {}

/// The approximate prefix indexes of a scheduler. Their plugins own them; each has an LRU of its
/// own, such as one for GPU memory and one for the CPU tier, over the same hashes.
struct ApproxStore {
  bool used = false;                   ///< Some plugin reads the hashes.
  ApproxPrefixIndex* index = nullptr;  ///< The first one.
  ApproxSettings settings;             ///< With the largest caps of all.
  std::vector<std::size_t> slots;      ///< Prefix slots that their producers write.

  /// A plugin reads hashes made so; false when others want different ones.
  bool want(const ApproxSettings& wanted) {
    if (used) return settings.widen(wanted);
    used = true;
    settings = wanted;
    return true;
  }
};

/// The plugins of one scheduler, in document order, with what they share.
class PluginSet {
 public:
  PluginSet();
  ~PluginSet();
  /// Takes a plugin under a name; its index is its position.
  Plugin* add(std::unique_ptr<Plugin> plugin, const PluginSpec& spec);
  Plugin* find(std::string_view name) const;
  std::span<const std::unique_ptr<Plugin>> all() const { return plugins_; }
  /// The plugins with a hook of their own, in document order.
  std::span<Plugin* const> with(Hook hook) const { return hooked_[static_cast<std::size_t>(hook)]; }

  /// The options for a KvEventIngestor over the precise index.
  KvIngestOptions kv_ingest_options() const;

  std::unique_ptr<PreciseStore> precise;
  ApproxStore approx;                      ///< The approximate indexes; empty without one.
  std::vector<const Producer*> producers;  ///< In the order in which they run.
  LatencyPredictor* predictor = nullptr;   ///< Of SchedulerOptions.
  InFlightCounts* in_flight = nullptr;     ///< The first counter, for display.
  std::vector<std::string> prefix_slots;   ///< Producer name of each prefix slot.

 private:
  std::vector<std::unique_ptr<Plugin>> plugins_;
  std::array<std::vector<Plugin*>, kHookCount> hooked_;
};

/// The requests that a plugin may make while it is built.
class BuildContext {
 public:
  BuildContext(EndpointPickerConfig& config, const PluginRegistry& registry, PluginSet& plugins,
               SignalNeeds& needs, bool thread_safe, Diagnostics& diagnostics);

  Era era() const { return config_.era; }
  const EraTraits& traits() const { return policies::traits(config_.era); }
  Distribution distribution() const { return config_.distribution; }
  const EndpointPickerConfig& config() const { return config_; }
  Severity unknown_keys() const { return policies::unknown_keys(traits()); }
  SignalNeeds& needs() { return needs_; }
  PluginSet& plugins() { return plugins_; }
  Diagnostics& diagnostics() { return diagnostics_; }
  bool thread_safe() const { return thread_safe_; }

  void error(const PluginSpec& spec, std::string_view parameter, std::string message,
             std::string hint = {});

  /// The instance of a name, built now if its turn has not come; nullptr with an error without one.
  Plugin* plugin(const std::string& name, const PluginSpec& user, std::string_view parameter);
  /// The producer of `facts` called `name`, or when empty the default instance of its type, which
  /// is created if the document has none. An error when `name` is no such producer.
  Plugin* producer(const std::string& name, Facts facts, const PluginSpec& user,
                   std::string_view parameter);
  /// The decider called `name`; nullptr with an error when there is none.
  const Decider* decider(const std::string& name, const PluginSpec& user,
                         std::string_view parameter);
  /// The slot in which the producer instance `name` writes its prefix matches.
  std::size_t prefix_slot(const std::string& name);
  /// The slot a scorer reads: of the named producer, or of the default approximate one.
  std::size_t prefix_slot_of(const std::string& producer_name, const PluginSpec& user);

  /// Builds every plugin of the document, and drops the needs that a parser leaves unread.
  void build_all();

 private:
  Plugin* build(std::size_t position);
  /// Whether an instance has this name and a type that documents may use. The loader reports other
  /// types, so what such an instance lacks is no second error.
  bool has_known_type(const std::string& name) const;

  EndpointPickerConfig& config_;
  const PluginRegistry& registry_;
  PluginSet& plugins_;
  SignalNeeds& needs_;
  bool thread_safe_;
  Diagnostics& diagnostics_;
  std::vector<std::uint8_t> state_;  // Per document position: 0 untouched, 1 in progress, 2 done.
};

}  // namespace routesim::policies
