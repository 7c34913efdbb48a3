#include "workloads/load/load.h"

#include <array>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace routesim::workloads {
namespace {

/// The key of each tool and its documentation, in the order of LoadTool from its second on.
constexpr std::array<Field, std::variant_size_v<LoadTool> - 1> kTools = {{
    {"inference_perf",
     "An inference-perf config, verbatim: a path, or the document in "
     "place."},
    {"vllm_bench",
     "Flags of `vllm bench serve`, its command line, or the path of a file with either."},
    {"conversations", "Closed-loop chats with growing context."},
    {"trace", "Replay of a recorded trace."},
    {"groups", "Streamed Poisson load over groups that share a prefix."},
}};

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

template <class T>
void describe_tool(Describer& d, const Field& f, Load& load) {
  ToolAccess<T> access(load);
  d.optional(f, access);
}

/// The document only: its reader fills in what it says.
template <>
void describe_tool<inference_perf::Workload>(Describer& d, const Field& f, Load& load) {
  const auto* known = load.get<inference_perf::Workload>();
  Document document = known != nullptr ? known->document : Document{};
  d.document(f, document);
  if (document.empty()) return;
  if (known == nullptr) ++load.tools_given;
  auto& workload = known != nullptr ? *load.get<inference_perf::Workload>()
                                    : load.tool.emplace<inference_perf::Workload>();
  workload.document = std::move(document);
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

}  // namespace

void describe_tools(Describer& d, Load& load) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (describe_tool<std::variant_alternative_t<I + 1, LoadTool>>(d, kTools[I], load), ...);
  }
  (std::make_index_sequence<kTools.size()>());
}

std::vector<std::string> load_keys() {
  std::vector<std::string> keys;
  for (const Field& tool : kTools) keys.emplace_back(tool.name);
  return keys;
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

}  // namespace routesim::workloads
