// From plugin types to plugin objects: the registry of every type, and the context in which the
// plugins of one scheduler are built.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "policies/config/document.h"
#include "policies/config/parameter_reader.h"
#include "policies/plugins.h"
#include "policies/scheduler.h"

namespace routesim::policies {

/// What a plugin type can be referenced as. A type may have several roles.
enum Role : std::uint32_t {
  kFilterRole = 1U << 0,
  kScorerRole = 1U << 1,
  kPickerRole = 1U << 2,
  kProfileHandlerRole = 1U << 3,
  kProducerRole = 1U << 4,
  kDeciderRole = 1U << 5,
  kDetectorRole = 1U << 6,
  kAdmitterRole = 1U << 7,
  kParserRole = 1U << 8,
  kDataSourceRole = 1U << 9,
  kExtractorRole = 1U << 10,
  kOrderingPolicyRole = 1U << 11,
  kFairnessPolicyRole = 1U << 12,
  kUsageLimitPolicyRole = 1U << 13,
  kDiscoveryRole = 1U << 14,
  kOtherRole = 1U << 15,
};
/// "filter+scorer".
std::string role_names(std::uint32_t roles);

class BuildContext;

/// What an era does with parameters it does not know.
inline UnknownKeys unknown_keys(const EraTraits& traits) {
  return traits.strict_parameters ? UnknownKeys::kError : UnknownKeys::kWarning;
}

/// One plugin type.
struct PluginType {
  enum class Support {
    kImplemented,
    kInert,    ///< Accepted: it reads, parses or reports, and has no part in decisions.
    kRefused,  ///< Known upstream, not available here; naming it is an error.
  };
  std::string_view type;
  std::uint32_t roles = 0;
  Support support = Support::kImplemented;
  std::string_view note;     ///< One sentence: what it does, or why it is inert or refused.
  Era since = Era::kV0_3_2;  ///< First era whose documents may name it.
  /// Builds one; adds errors to context.diagnostics() and may return nothing then.
  std::function<std::unique_ptr<Plugin>(const PluginSpec&, BuildContext&)> create;
  /// Describes the parameters with their defaults (for `routesim list plugins`).
  std::function<void(Describer&)> describe_parameters;
  /// Describes what an era reads of them, with the defaults it has there. Absent where they are the
  /// same in all eras.
  std::function<void(Describer&, const PluginSpec&, Era)> describe_applied = {};
};

/// The set of plugin types a document may use. Immutable once handed to a loader.
class PluginRegistry {
 public:
  /// Every type of the llm-d router and of Heimdall generation 1.
  static const PluginRegistry& standard();
  /// Adds or replaces a type.
  void add(PluginType type);
  const PluginType* find(std::string_view type) const;
  std::span<const PluginType> types() const { return types_; }
  std::vector<std::string> type_names() const;

 private:
  std::vector<PluginType> types_;
};

class PreciseStore;
class ApproxPrefix;
class InFlightLoad;

/// The plugins of one scheduler, in document order, with what they share.
class PluginSet {
 public:
  PluginSet();
  ~PluginSet();
  /// Takes a plugin under a name; its index is its position.
  Plugin* add(std::unique_ptr<Plugin> plugin, const PluginSpec& spec);
  Plugin* find(std::string_view name) const;
  std::span<const std::unique_ptr<Plugin>> all() const { return plugins_; }
  /// Those with a hook of their own, in document order.
  std::span<Plugin* const> with(Hook hook) const { return hooked_[static_cast<std::size_t>(hook)]; }

  std::unique_ptr<PreciseStore> precise;
  ApproxPrefix* approx = nullptr;          ///< The first approximate index.
  std::vector<const Producer*> producers;  ///< In the order in which they run.
  InFlightLoad* in_flight = nullptr;       ///< The first counter, for display.
  std::vector<std::string> prefix_slots;   ///< Producer name of each prefix slot.

 private:
  std::vector<std::unique_ptr<Plugin>> plugins_;
  std::array<std::vector<Plugin*>, kHookCount> hooked_;
};

/// What a plugin may ask for while it is built.
class BuildContext {
 public:
  BuildContext(EndpointPickerConfig& config, const PluginRegistry& registry, PluginSet& plugins,
               SignalNeeds& needs, bool thread_safe, Diagnostics& diagnostics);

  Era era() const { return config_.era; }
  const EraTraits& traits() const { return policies::traits(config_.era); }
  Distribution distribution() const { return config_.distribution; }
  const EndpointPickerConfig& config() const { return config_; }
  UnknownKeys unknown_keys() const { return policies::unknown_keys(traits()); }
  SignalNeeds& needs() { return needs_; }
  PluginSet& plugins() { return plugins_; }
  Diagnostics& diagnostics() { return diagnostics_; }
  bool thread_safe() const { return thread_safe_; }

  /// An error about a parameter of `spec`.
  void error(const PluginSpec& spec, std::string_view parameter, std::string message,
             std::string hint = {});

  /// The instance with this name, built now if its turn has not come; nullptr with an error when
  /// it is not declared.
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
  /// The in-flight counter instance `name` (default inflight-load-producer).
  InFlightLoad* in_flight(const std::string& name, const PluginSpec& user);

  /// Builds every plugin of the document.
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

/// An implemented type whose class is constructed from (parameters, spec, context).
template <class T, class P>
PluginType implemented(std::string_view type, std::uint32_t roles, std::string_view note,
                       Era since = Era::kV0_3_2) {
  return {.type = type,
          .roles = roles,
          .support = PluginType::Support::kImplemented,
          .note = note,
          .since = since,
          .create = [](const PluginSpec& spec, BuildContext& context) -> std::unique_ptr<Plugin> {
            P parameters = read_parameters<P>(spec, context.unknown_keys(), context.diagnostics());
            return make_plugin<T>(parameters, spec, context);
          },
          .describe_parameters =
              [](Describer& d) {
                P parameters{};
                describe(d, parameters);
              }};
}

}  // namespace routesim::policies
