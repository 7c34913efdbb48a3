#include "workloads/load/load.h"

#include <type_traits>
#include <utility>

#include "base/check.h"

namespace routesim::workloads {
namespace {

/// A tool as an optional value: giving one takes the place of the one before.
template <class T>
class ToolAccess final : public OptionalAccess {
 public:
  explicit ToolAccess(Load& load) : load_(load) {}
  bool engaged() const override { return load_.get<T>() != nullptr; }
  void engage(bool on) override {
    if (on == engaged()) return;
    load_.tools_given += on ? 1 : -1;
    if (on)
      load_.tool.emplace<T>();
    else
      load_.tool.emplace<std::monostate>();
  }
  void visit(Describer& d) override { field(d, Field{"", ""}, *load_.get<T>()); }

 private:
  Load& load_;
};

/// Describes a tool, or only its document where a reader in tools/ingest fills in the rest.
template <class T>
void describe_tool(Describer& d, const Field& f, Load& load) {
  if constexpr (requires(T & t) { t.document; }) {
    const T* known = load.get<T>();
    Document document = known != nullptr ? known->document : Document{};
    d.document(f, document);
    if (document.empty()) return;
    if (known == nullptr) ++load.tools_given;
    T& tool = known != nullptr ? *load.get<T>() : load.tool.emplace<T>();
    tool.document = std::move(document);
  } else {
    ToolAccess<T> access(load);
    d.optional(f, access);
  }
}

/// Calls `f` with the settings of the tool, or returns `none` where there is no tool.
template <class L, class R, class F>
R with_tool(L& load, R none, const F& f) {
  return std::visit(
      [&](auto& tool) -> R {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(tool)>, std::monostate>)
          return std::move(none);
        else
          return f(tool);
      },
      load.tool);
}

/// Calls `f.template operator()<T>()` for the settings T of each tool.
template <class F>
void for_each_tool(const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f.template operator()<std::variant_alternative_t<I + 1, LoadTool>>(), ...);
  }
  (std::make_index_sequence<std::variant_size_v<LoadTool> - 1>());
}

}  // namespace

void describe_tools(Describer& d, Load& load) {
  for_each_tool([&]<LoadSettings T>() { describe_tool<T>(d, LoadKey<T>::value, load); });
}

std::vector<std::string> load_keys() {
  std::vector<std::string> keys;
  for_each_tool([&]<class T>() { keys.emplace_back(LoadKey<T>::value.name); });
  return keys;
}

std::string_view load_key(const Load& load) {
  return with_tool(load, std::string_view(),
                   []<class T>(const T&) { return LoadKey<T>::value.name; });
}

const Document* document_of(const Load& load) {
  return with_tool(load, static_cast<const Document*>(nullptr),
                   []<class T>(const T& tool) -> const Document* {
                     if constexpr (requires { tool.document; }) return &tool.document;
                     return nullptr;
                   });
}

LoadTraits traits_of(const Load& load) {
  return with_tool(load, LoadTraits{}, [](const auto& tool) { return traits_of(tool); });
}

std::vector<LoadFile> files_of(const Load& load) {
  return with_tool(load, std::vector<LoadFile>{}, [](const auto& tool) { return files_of(tool); });
}

std::string scale_rates(Load& load, double by) {
  return with_tool(load, std::string{}, [by](auto& tool) { return scale_rates(tool, by); });
}

std::string hold_rate(Load& load, double rate, double seconds) {
  return with_tool(load, std::string{}, [&](auto& tool) { return hold_rate(tool, rate, seconds); });
}

std::string take_demand(Load& load) {
  // The stage's own rate and length are not used.
  constexpr double kRate = 1, kSeconds = 1000;
  const std::string_view own = traits_of(load).own_times;
  return own.empty() ? hold_rate(load, kRate, kSeconds) : std::string(own);
}

void set_release_defaults(Load& load, bool old_servers) {
  with_tool(load, false, [old_servers](auto& tool) {
    if constexpr (requires { set_release_defaults(tool, old_servers); })
      set_release_defaults(tool, old_servers);
    return true;
  });
}

std::unique_ptr<LoadGenerator> make_load_generator(const Load& load, const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  ROUTESIM_CHECK(load.tool.index() != 0, "a load without a tool");
  return with_tool(load, std::unique_ptr<LoadGenerator>(), [&](const auto& tool) {
    return make_load_generator(tool, options, inputs, diagnostics);
  });
}

std::unique_ptr<LoadGenerator> make_load_generator(const Load& load, const Demand& demand,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  const std::optional<DemandArrivals> arrivals =
      demand_arrivals(demand, options.seed, inputs, diagnostics);
  if (!arrivals) return nullptr;
  LoadInputs timed = inputs;
  timed.arrivals = arrivals->make;
  std::unique_ptr<LoadGenerator> made = make_load_generator(load, options, timed, diagnostics);
  if (made == nullptr) return nullptr;
  return with_report_stages(std::move(made), *arrivals, demand.report_every);
}

}  // namespace routesim::workloads
