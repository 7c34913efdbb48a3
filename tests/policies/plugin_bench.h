// Builds a scheduler around one plugin and feeds it by hand: prefix matches, latency estimates and
// in-flight counts come from stub producers and hooks, so vectors drive the real plugin code.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "policies/config/factory.h"
#include "tests/policies/scheduler_fixture.h"
#include "tests/policies/vector_file.h"

namespace routesim::policies {

using test::Json;

/// What the stub producers write.
struct StubData {
  struct Match {
    std::int64_t match = 0, total = 0, block_size = 1;
    std::optional<std::int64_t> cached;  // Default: match.
  };
  std::vector<std::optional<Match>> matches;  // By row; nothing = no info at that endpoint.
  std::vector<std::optional<LatencyEstimate>> latency;
};

class PluginBench {
 public:
  /// `type` is the plugin under test, declared as "subject" in profile "default" unless it is a
  /// profile handler or detector.
  PluginBench(const std::string& type, const Json& parameters, std::size_t endpoints,
              LoadOptions load = {}, std::vector<std::string> profiles = {"default"},
              const Json& more_plugins = Json::array());

  bool built() const { return scheduler_ != nullptr; }
  std::string errors() const { return messages_of(diagnostics_); }
  Scheduler& scheduler() { return *scheduler_; }
  EndpointTable& table() { return table_; }
  StubData& stub() { return stub_; }
  /// The plugin under test, to call it directly.
  template <class T>
  T& subject() {
    auto* typed = dynamic_cast<T*>(subject_);
    if (typed == nullptr) throw std::logic_error("the subject is of another kind");
    return *typed;
  }
  /// A cycle over the table in which every prefix slot holds the stub's matches.
  void begin(Cycle& cycle, const RequestView& request, Decision& decision,
             SimTime now = SimTime::zero());

  /// Sends `requests` to `row`, `tokens` altogether.
  void load(EndpointRow row, std::int64_t requests, std::int64_t tokens);
  /// Explains one request.
  Explanation explain(RequestView request = {}, SimTime now = SimTime::zero());
  /// Raw scores of the subject.
  std::vector<double> scores(RequestView request = {}, SimTime now = SimTime::zero());
  /// Rows left by the subject as a filter.
  std::vector<EndpointRow> kept(RequestView request = {}, SimTime now = SimTime::zero());
  /// Rows the subject picks as a picker, for the request called `id`.
  std::vector<EndpointRow> picked(const std::vector<double>& totals, std::uint64_t id);

 private:
  StubData stub_;
  PluginRegistry registry_;
  Diagnostics diagnostics_;
  EndpointTable table_;
  std::unique_ptr<Scheduler> scheduler_;
  Plugin* subject_ = nullptr;
  std::uint64_t next_id_ = 1'000'000;
};

}  // namespace routesim::policies
