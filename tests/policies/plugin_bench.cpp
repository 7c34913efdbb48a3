#include "tests/policies/plugin_bench.h"

namespace routesim::policies {
namespace {

/// Writes the stub's matches; endpoints without info look like an absent attribute.
class StubMatchProducer final : public Producer {
 public:
  StubMatchProducer(const StubData* data, std::size_t slot) : data_(data), slot_(slot) {}
  void produce(Cycle& cycle) const override { write(*data_, cycle, slot_); }
  Facts facts() const override { return Facts::kPrefixMatches; }
  static void write(const StubData& data, Cycle& cycle, std::size_t slot) {
    PrefixMatches& m = cycle.prefix(slot);
    for (const EndpointRow r : cycle.candidates()) {
      if (r >= data.matches.size() || !data.matches[r]) continue;
      const StubData::Match& match = *data.matches[r];
      m.computed = m.written = true;
      m.keys = m.total_blocks = match.total;
      m.block_size = match.block_size;
      m.touched.push_back(r);
      m.raw[r] = static_cast<double>(match.match);
      m.match[r] = static_cast<std::int32_t>(match.match);
      m.cached[r] = static_cast<std::int32_t>(match.cached.value_or(match.match));
    }
  }

 private:
  const StubData* data_;
  std::size_t slot_;
};

class StubLatencyProducer final : public Producer {
 public:
  explicit StubLatencyProducer(const StubData* data) : data_(data) {}
  void produce(Cycle& cycle) const override {
    if (data_->latency.empty()) return;
    cycle.latency().assign(cycle.endpoints().rows(), LatencyEstimate{});
    for (std::size_t r = 0; r < data_->latency.size(); ++r)
      if (data_->latency[r]) cycle.latency()[r] = *data_->latency[r];
  }
  Facts facts() const override { return Facts::kLatencyEstimates; }

 private:
  const StubData* data_;
};

PluginRegistry with_stubs(const StubData* data) {
  PluginRegistry registry = standard_registry();
  PluginType match = *registry.find("approx-prefix-cache-producer");
  // The stub takes the default producer's place, so every plugin that reads "the" prefix info and
  // names no producer reads the stub.
  match.create = [data](const PluginSpec& spec, BuildContext& context) {
    return std::make_unique<StubMatchProducer>(data, context.prefix_slot(spec.name));
  };
  registry.add(match);
  PluginType latency = *registry.find("predicted-latency-producer");
  latency.create = [data](const PluginSpec&, BuildContext&) {
    return std::make_unique<StubLatencyProducer>(data);
  };
  registry.add(latency);
  return registry;
}

}  // namespace

PluginBench::PluginBench(const std::string& type, const Json& parameters, std::size_t endpoints,
                         LoadOptions load, std::vector<std::string> profiles,
                         const Json& more_plugins)
    : registry_(with_stubs(&stub_)), table_(make_endpoints(endpoints)) {
  std::uint32_t roles = 0;
  if (const PluginType* known = registry_.find(type)) {
    roles = known->roles;
    PluginType watched = *known;
    watched.create = [this, create = known->create](const PluginSpec& spec, BuildContext& context) {
      std::unique_ptr<Plugin> plugin = create(spec, context);
      if (spec.name == "subject") subject_ = plugin.get();
      return plugin;
    };
    registry_.add(watched);
  }
  Json subject = {{"name", "subject"}, {"type", type}};
  if (!parameters.is_null()) subject["parameters"] = parameters;
  Json document = {{"apiVersion", "llm-d.ai/v1alpha1"},
                   {"kind", "EndpointPickerConfig"},
                   {"plugins", Json::array({subject})},
                   {"schedulingProfiles", Json::array()}};
  for (const Json& plugin : more_plugins) document["plugins"].push_back(plugin);
  for (const std::string& name : profiles) {
    Json plugins = Json::array();
    if ((roles & (kFilterRole | kScorerRole | kPickerRole)) != 0)
      plugins.push_back({{"pluginRef", "subject"}});
    document["schedulingProfiles"].push_back({{"name", name}, {"plugins", plugins}});
  }
  if ((roles & kProfileHandlerRole) == 0 && profiles.size() > 1)
    document["plugins"].push_back({{"type", "disagg-profile-handler"}});
  if ((roles & kDetectorRole) != 0) document["saturationDetector"] = {{"pluginRef", "subject"}};
  load.registry = &registry_;
  const auto config = load_endpoint_picker_config(*parse_yaml(document.dump()), load, diagnostics_);
  if (!config) return;
  SchedulerOptions options;
  options.ordered_candidates = true;
  options.registry = &registry_;
  scheduler_ = make_scheduler(*config, options, diagnostics_);
}

void PluginBench::load(EndpointRow row, std::int64_t requests, std::int64_t tokens) {
  for (std::int64_t i = 0; i < requests; ++i) {
    RequestView request;
    request.id = next_id_++;
    request.prompt_tokens = i == 0 ? tokens : 0;
    Decision decision;
    decision.outcome = Outcome::kRouted;
    decision.primary = EndpointId(row);
    decision.profiles.resize(scheduler_->profile_names().size());
    decision.profiles[0].state = ProfileState::kOk;
    decision.profiles[0].targets = {row};
    scheduler_->on_routed(request, decision, table_, SimTime::zero());
  }
}

void PluginBench::begin(Cycle& cycle, const RequestView& request, Decision& decision, SimTime now) {
  constexpr std::size_t kSlots = 4;  // More than any of these documents hands out.
  decision.clear();
  decision.profiles.resize(scheduler_->profile_names().size());
  cycle.begin({.request = request,
               .endpoints = table_,
               .now = now,
               .decision = decision,
               .ordered_candidates = true,
               .prefix_slots = kSlots});
  for (std::size_t slot = 0; slot < kSlots; ++slot) StubMatchProducer::write(stub_, cycle, slot);
}

Explanation PluginBench::explain(RequestView request, SimTime now) {
  Explanation explanation;
  scheduler_->explain(request, table_, now, explanation);
  return explanation;
}

std::vector<double> PluginBench::scores(RequestView request, SimTime now) {
  const Explanation explanation = explain(request, now);
  for (const ProfileExplanation& profile : explanation.profiles)
    for (const auto& step : profile.scorers)
      if (step.plugin == "subject") return step.scores;
  return {};
}

std::vector<EndpointRow> PluginBench::picked(const std::vector<double>& totals, std::uint64_t id) {
  Cycle cycle;
  Decision decision;
  RequestView request;
  request.id = id;
  begin(cycle, request, decision);
  std::vector<EndpointRow> rows;
  subject<Picker>().pick(cycle, table_.candidates(), totals, rows);
  return rows;
}

std::vector<EndpointRow> PluginBench::kept(RequestView request, SimTime now) {
  const Explanation explanation = explain(request, now);
  for (const ProfileExplanation& profile : explanation.profiles)
    for (const auto& step : profile.filters)
      if (step.plugin == "subject") return step.survivors;
  return {};
}

}  // namespace routesim::policies
