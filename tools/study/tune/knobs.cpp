#include "tools/study/tune/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <string_view>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "policies/config/factory.h"
#include "tools/ingest/tree/description.h"
#include "tools/study/tune/tune_deploy.h"

namespace routesim::tools {

namespace {

using policies::PluginSpec;

/// Weights count only against each other; llm-d's guides use 1 to 3.
constexpr std::array<double, 9> kWeights = {0, 0.5, 1, 2, 3, 4, 6, 8, 10};
/// vLLM's own defaults are 256 and 1024 sequences, 2048 to 16384 tokens, by release and GPU.
constexpr std::array<double, 6> kSequences = {32, 64, 128, 256, 512, 1024};
constexpr std::array<double, 5> kBatchedTokens = {2048, 4096, 8192, 16384, 32768};

/// Plausible values of a plugin's parameter: around its default, or what published guides use.
struct ParameterValues {
  std::string_view type;
  std::string_view parameter;
  std::string_view values;  ///< Words. Numbers ascend.
};
constexpr std::array kParameters = std::to_array<ParameterValues>({
    {"load-aware-scorer", "threshold", "8 32 64 128 256"},
    {"token-load-scorer", "queueThresholdTokens", "65536 262144 1048576 4194304"},
    {"active-request-scorer", "idleThreshold", "0 1 2 4 8"},
    {"active-request-scorer", "maxBusyScore", "0.25 0.5 0.75 1"},
    {"prefix-cache-scorer", "lruCapacityPerServer", "8000 16000 31250 62500 125000"},
    {"prefix-cache-scorer", "maxPrefixBlocksToMatch", "64 256 1024 2048"},
    {"approx-prefix-cache-producer", "lruCapacityPerServer", "8000 16000 31250 62500 125000"},
    {"approx-prefix-cache-producer", "maxPrefixBlocksToMatch", "64 256 1024 2048"},
    {"precise-prefix-cache-scorer", "speculativeIndexing", "false true"},
    {"precise-prefix-cache-producer", "speculativeIndexing", "false true"},
    {"utilization-detector", "queueDepthThreshold", "2 5 10 20 50 128"},
    {"utilization-detector", "kvCacheUtilThreshold", "0.6 0.7 0.8 0.9 0.95"},
    {"concurrency-detector", "maxConcurrency", "25 50 100 200 400"},
    {"prefix-based-pd-decider", "nonCachedTokens", "0 16 64 256 1024 4096 16384"},
    {"prefix-based-pd-decider", "promptTokens", "0 256 1024 4096"},
    {"pd-profile-handler", "threshold", "0 256 1024 4096 16384"},
    {"prefix-cache-affinity-filter", "affinityThreshold", "0.5 0.7 0.8 0.9 0.99"},
    {"prefix-cache-affinity-filter", "explorationProbability", "0 0.01 0.05"},
    {"prefix-cache-affinity-filter", "maxTTFTPenaltyMs", "500 1000 5000 18000"},
    {"latency-scorer", "ttftWeight", "0 0.2 0.5 0.8 1"},
    {"latency-scorer", "headroomSelectionStrategy", "least most"},
    {"slo-headroom-tier-filter", "epsilonExploreNeg", "0 0.01 0.05"},
    {"p2p-source-producer", "minCachedTokenDelta", "64 256 1024 4096"},
    {"static-usage-limit-policy", "threshold", "0.6 0.8 1"},
});
constexpr std::array<std::string_view, 2> kDeciders = {"always-disagg-pd-decider",
                                                       "prefix-based-pd-decider"};
constexpr std::array<std::string_view, 3> kPickers = {"max-score-picker", "weighted-random-picker",
                                                      "random-picker"};

std::optional<double> as_number(const std::string& text) { return number_from(text); }

bool is_same_value(const std::string& a, const std::string& b) {
  const std::optional<double> x = as_number(a);
  const std::optional<double> y = as_number(b);
  return x && y ? *x == *y : a == b;
}

template <class Numbers>
std::vector<std::string> texts_of(const Numbers& numbers) {
  std::vector<std::string> out;
  for (const double v : numbers) out.push_back(number_text(v));
  return out;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// Puts the published value among the others: in their place where all are numbers, else first.
Knob finish_knob(std::string name, std::vector<KnobValue> values, const std::string& published) {
  std::erase_if(values, [&](const KnobValue& v) { return is_same_value(v.text, published); });
  const auto is_number = [](const KnobValue& v) { return as_number(v.text).has_value(); };
  Knob knob{.name = std::move(name), .values = std::move(values)};
  knob.ordered = as_number(published) && std::ranges::all_of(knob.values, is_number);
  auto place = knob.values.begin();
  if (knob.ordered) {
    const auto less = [](const KnobValue& a, const KnobValue& b) {
      return *as_number(a.text) < *as_number(b.text);
    };
    std::ranges::stable_sort(knob.values, less);
    place = std::ranges::lower_bound(knob.values, KnobValue{.text = published}, less);
  }
  knob.published = static_cast<std::size_t>(place - knob.values.begin());
  knob.values.insert(place, {.text = published});
  return knob;
}

/// A knob of key paths that all get the same plain value.
Knob path_knob(std::string name, const std::vector<std::string>& paths,
               const std::vector<std::string>& texts, const std::string& published,
               const SourceLocation& where = {.file = "tune"}) {
  std::vector<KnobValue> values;
  for (const std::string& text : texts) {
    KnobValue& value = values.emplace_back(KnobValue{.text = text});
    for (const std::string& path : paths)
      value.assignments.push_back(make_assignment(path, text, where));
  }
  return finish_knob(std::move(name), std::move(values), published);
}

/// Whether a list element can be chosen by this name in a key path, as `[name]`.
bool leads_by_name(const std::string& name) {
  return !name.empty() && name.find_first_of("[]=") == std::string::npos && !as_number(name);
}

/// `cluster.pools[NAME].`, or with the pool's index where its name cannot stand there.
std::string in_pool(const KnobSource& source, const std::string& name) {
  const auto at = std::ranges::find(source.plan.pools, name,
                                    [](const sim::ResolvedPool& p) { return p.config.name; });
  const std::string index = std::to_string(at - source.plan.pools.begin());
  return "cluster.pools[" + (leads_by_name(name) ? name : index) + "].";
}

std::string in_picker(const std::string& path) { return std::string(kPickerPath) + "." + path; }

/// A scorer of a profile.
struct ScorerPlace {
  std::string profile;
  std::string name;
  std::string path;  ///< Of its reference in the document.
  double weight = 1;
};

/// Reads what the router's document has.
class PickerReader {
 public:
  explicit PickerReader(const KnobSource& source)
      : config_(*source.variant.endpoint_picker), root_(source.picker->root) {}

  std::vector<ScorerPlace> scorers() const {
    std::vector<ScorerPlace> out;
    for (const policies::ProfileSpec& profile : config_.profiles)
      for (const policies::PluginReference& ref : profile.plugins)
        if (has_role(ref, policies::kScorerRole) && node(ref.path) != nullptr)
          out.push_back({profile.name, ref.name, readable(ref.path), ref.weight.value_or(1)});
    return out;
  }

  std::size_t scorers_in(const std::string& profile) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        scorers(), [&](const ScorerPlace& s) { return s.profile == profile; }));
  }

  /// The declared picker of a profile, or null.
  const PluginSpec* picker_of(const policies::ProfileSpec& profile) const {
    for (const policies::PluginReference& ref : profile.plugins)
      if (has_role(ref, policies::kPickerRole) && node(ref.path) != nullptr)
        return config_.find(ref.name);
    return nullptr;
  }

  /// The assignments that make `spec` a plugin of another type. A plugin without a name of its own
  /// is called by its type, so its references change too.
  std::vector<Assignment> retyped(const PluginSpec& spec, const std::string& type) const {
    std::vector<Assignment> out;
    const auto add = [&](const std::string& path, const std::string& key) {
      out.push_back(make_assignment(in_picker(path + "." + key), type));
    };
    const ConfigNode::Ptr own = node(spec.path);
    if (own == nullptr) return out;
    add(spec.path, "type");
    if (own->child("name") != nullptr) return out;
    for (const policies::ProfileSpec& profile : config_.profiles)
      for (const policies::PluginReference& ref : profile.plugins)
        if (ref.name == spec.name && node(ref.path) != nullptr) add(ref.path, "pluginRef");
    // Profile handlers name their deciders in their parameters.
    for (const PluginSpec& other : config_.plugins)
      for_each_key(
          *other.parameters, nullptr,
          [&](const ConfigNode& value, const std::string& path, const SourceLocation&) {
            if (value.text() == spec.name)
              out.push_back(make_assignment(in_picker(other.path + ".parameters." + path), type));
          });
    return out;
  }

  /// The value of a parameter in the document, else its default.
  std::string parameter(const PluginSpec& spec, const std::string& name) const {
    if (const ConfigNode* const own = spec.parameters->child(name)) return own->text();
    const policies::PluginType* const type = policies::standard_registry().find(spec.type);
    const FieldDescription values = describe_values([&](Describer& d) {
      if (type->describe_applied)
        type->describe_applied(d, spec, config_.era);
      else if (type->describe_parameters)
        type->describe_parameters(d);
    });
    for (const FieldDescription& member : values.members)
      if (member.name == name && !member.value.empty()) return member.value;
    return "default";
  }

  const policies::EndpointPickerConfig& config() const { return config_; }
  bool has(const PluginSpec& spec) const { return node(spec.path) != nullptr; }

  /// The same path with names where they lead to the same place.
  std::string readable(const std::string& path) const {
    const std::optional<std::vector<PathStep>> steps = parse_key_path(path);
    std::string out;
    std::vector<PathStep> so_far;
    for (const PathStep& step : steps.value_or(std::vector<PathStep>{})) {
      so_far.push_back(step);
      if (!step.in_brackets) {
        out += (out.empty() ? "" : ".") + step.key;
        continue;
      }
      const ConfigNode::Ptr element = node_at(root_, so_far);
      const std::string name = element != nullptr ? name_of(*element) : "";
      std::vector<PathStep> by_name = so_far;
      by_name.back() = {.key = name, .in_brackets = true, .index = std::nullopt};
      const bool leads = leads_by_name(name) && node_at(root_, by_name) == element;
      out += "[" + (leads ? name : step.key) + "]";
    }
    return out;
  }

 private:
  static std::string name_of(const ConfigNode& element) {
    for (const std::string_view key : {"name", "pluginRef", "type"})
      if (const ConfigNode* const name = element.child(key)) return name->text();
    return {};
  }

  ConfigNode::Ptr node(const std::string& path) const {
    const std::optional<std::vector<PathStep>> steps = parse_key_path(path);
    return steps ? node_at(root_, *steps) : nullptr;
  }

  bool has_role(const policies::PluginReference& ref, std::uint32_t role) const {
    const PluginSpec* const spec = config_.find(ref.name);
    const policies::PluginType* const type =
        spec == nullptr ? nullptr : policies::standard_registry().find(spec->type);
    return type != nullptr && (type->roles & role) != 0;
  }

  const policies::EndpointPickerConfig& config_;
  const ConfigNode::Ptr& root_;
};

Knob weight_knob(const PickerReader& reader, const ScorerPlace& scorer,
                 const std::vector<std::string>& texts) {
  const bool several = reader.config().profiles.size() > 1;
  return path_knob("weight of " + scorer.name + (several ? " in " + scorer.profile : ""),
                   {in_picker(scorer.path + ".weight")}, texts, number_text(scorer.weight));
}

/// A knob of the type of a plugin.
Knob type_knob(const PickerReader& reader, const PluginSpec& spec, const std::string& name,
               const std::vector<std::string>& types) {
  std::vector<KnobValue> values;
  for (const std::string& type : types) {
    const policies::PluginType* const known = policies::standard_registry().find(type);
    if (known != nullptr && known->since > reader.config().era) continue;
    if (reader.config().find(type) != nullptr && type != spec.type) continue;  // Its name is taken.
    values.push_back({.text = type, .assignments = reader.retyped(spec, type)});
  }
  return finish_knob(name, std::move(values), spec.type);
}

void add_picker_knobs(const KnobSource& source, std::vector<Knob>& knobs) {
  const PickerReader reader(source);
  for (const ScorerPlace& scorer : reader.scorers())
    if (reader.scorers_in(scorer.profile) > 1)
      knobs.push_back(weight_knob(reader, scorer, texts_of(kWeights)));
  std::set<std::string> seen;
  for (const policies::ProfileSpec& profile : reader.config().profiles) {
    const PluginSpec* const spec = reader.picker_of(profile);
    if (spec == nullptr || !seen.insert(spec->name).second) continue;
    const bool several = reader.config().profiles.size() > 1;
    knobs.push_back(type_knob(reader, *spec, several ? "picker of " + profile.name : "picker",
                              {kPickers.begin(), kPickers.end()}));
  }
  std::vector<const PluginSpec*> deciders;
  for (const PluginSpec& spec : reader.config().plugins)
    if (std::ranges::find(kDeciders, spec.type) != kDeciders.end() && reader.has(spec))
      deciders.push_back(&spec);
  const auto decider_name = [&](const PluginSpec& spec) {
    return deciders.size() > 1 ? "decider " + spec.name : "decider";
  };
  for (const PluginSpec* const spec : deciders)
    knobs.push_back(
        type_knob(reader, *spec, decider_name(*spec), {kDeciders.begin(), kDeciders.end()}));
  for (const PluginSpec& spec : reader.config().plugins)
    for (const ParameterValues& row : kParameters) {
      if (row.type != spec.type || !reader.has(spec)) continue;
      const std::string parameter(row.parameter);
      const std::string path = reader.readable(spec.path) + ".parameters." + parameter;
      knobs.push_back(path_knob(parameter + " of " + spec.name, {in_picker(path)},
                                split_words(row.values), reader.parameter(spec, parameter)));
      if (std::ranges::find(deciders, &spec) != deciders.end())
        knobs.back().type_knob = decider_name(spec);
    }
}

/// Values around a number, where nothing else is known of it: halves and doubles within the bounds;
/// of shares, also half as far from 1. Other settings say what the product is, not how it is tuned.
std::vector<std::string> around(const FieldDescription& field) {
  const double v = as_number(field.value).value_or(0);
  std::set<double> numbers;
  if (field.kind == FieldDescription::Kind::kInteger && v != 0)
    for (const double by : {0.25, 0.5, 2.0, 4.0})
      if (const double n = std::round(v * by); n >= static_cast<double>(field.integer_range.min) &&
                                               n <= static_cast<double>(field.integer_range.max))
        numbers.insert(n);
  if (field.kind == FieldDescription::Kind::kReal && v != 0) {
    const RealRange& r = field.real_range;
    for (const double n : {v / 4, v / 2, r.max == 1 ? 1 - (1 - v) / 2 : 2 * v, 4 * v})
      if (n > r.min && n < r.max) numbers.insert(with_digits(n, 3));
  }
  return texts_of(numbers);
}

/// Settings of a balancer that is no endpoint picker.
void add_balancer_knobs(const KnobSource& source, std::vector<Knob>& knobs) {
  sim::Scenario scenario = source.variant.scenario;
  const std::string section(policies::balancer_row(scenario.routing.balancer).section);
  if (section.empty()) return;
  const auto settings = [&](Describer& d) { describe(d, scenario.routing); };
  FieldDescription routing = describe_values(settings);
  auto own = std::ranges::find(routing.members, section, &FieldDescription::name);
  if (own != routing.members.end() && own->members.empty()) {  // All of them have their defaults.
    routing = describe_types(settings);
    own = std::ranges::find(routing.members, section, &FieldDescription::name);
  }
  if (own == routing.members.end()) return;
  for (const FieldDescription& field : own->members) {
    const std::vector<std::string> values = around(field);
    if (!values.empty() && field.engaged)
      knobs.push_back(path_knob(section + "." + field.name,
                                {"routing." + section + "." + field.name}, values, field.value));
  }
}

void add_engine_knobs(const KnobSource& source, std::vector<Knob>& knobs) {
  for (const sim::ResolvedPool& pool : source.plan.pools) {
    const std::string of = source.plan.pools.size() > 1 ? " of " + pool.config.name : "";
    const std::string path = in_pool(source, pool.config.name) + "engine.";
    knobs.push_back(path_knob("max_num_seqs" + of, {path + "max_num_seqs"}, texts_of(kSequences),
                              std::to_string(pool.rules.max_num_seqs)));
    if (pool.rules.sglang) {
      const std::string chunk = "sglang.chunked_prefill_size";
      knobs.push_back(path_knob("chunked_prefill_size" + of, {path + chunk},
                                texts_of(kBatchedTokens),
                                std::to_string(pool.rules.sglang->chunk_tokens)));
      continue;
    }
    knobs.push_back(path_knob("max_num_batched_tokens" + of, {path + "max_num_batched_tokens"},
                              texts_of(kBatchedTokens),
                              std::to_string(pool.rules.max_num_batched_tokens)));
  }
}

/// All ways to share the GPUs of two pools. One of them may be as it is.
Knob split_knob(const KnobSource& source, const sim::PoolConfig& a, const sim::PoolConfig& b) {
  const std::int64_t total = a.replicas * a.gpus_per_server() + b.replicas * b.gpus_per_server();
  std::vector<KnobValue> values;
  for (std::int64_t n = 1; n * a.gpus_per_server() < total; ++n) {
    const std::int64_t rest = total - n * a.gpus_per_server();
    if (rest % b.gpus_per_server() != 0) continue;
    const std::int64_t m = rest / b.gpus_per_server();
    const auto replicas = [&](const sim::PoolConfig& pool, std::int64_t count) {
      return make_assignment(in_pool(source, pool.name) + "replicas", std::to_string(count));
    };
    values.push_back({.text = std::to_string(n) + ":" + std::to_string(m),
                      .assignments = {replicas(a, n), replicas(b, m)}});
  }
  const std::string name = a.name + ":" + b.name;
  const std::string published = std::to_string(a.replicas) + ":" + std::to_string(b.replicas);
  Knob knob = finish_knob(name, values, published);
  // One more of the first is less of the second: neighbours are alike.
  const auto first = [](const KnobValue& v) {
    return *number_from(v.text.substr(0, v.text.find(':')));
  };
  std::ranges::stable_sort(knob.values, {}, first);
  const auto at = std::ranges::find(knob.values, published, &KnobValue::text);
  knob.published = static_cast<std::size_t>(at - knob.values.begin());
  knob.ordered = true;
  return knob;
}

void add_split_knob(const KnobSource& source, std::vector<Knob>& knobs) {
  const sim::PoolConfig* prefill = nullptr;
  const sim::PoolConfig* decode = nullptr;
  for (const sim::ResolvedPool& pool : source.plan.pools) {
    const bool is_prefill = pool.config.role == sim::PoolRole::kPrefill;
    if (pool.config.role == sim::PoolRole::kBoth) continue;
    const sim::PoolConfig*& own = is_prefill ? prefill : decode;
    if (own != nullptr) return;  // Which of the two is not for us to say.
    own = &pool.config;
  }
  if (prefill != nullptr && decode != nullptr)
    knobs.push_back(split_knob(source, *prefill, *decode));
}

/// Turns an entry of a tune file into a knob.
class KnobReader {
 public:
  KnobReader(const TuneKnobConfig& config, const std::string& path, const KnobSource& source,
             const Provenance& provenance, Diagnostics& diagnostics)
      : config_(config),
        path_(path),
        source_(source),
        provenance_(provenance),
        diagnostics_(diagnostics) {}

  std::optional<Knob> read() {
    const int forms =
        static_cast<int>(!config_.set.empty()) + static_cast<int>(!config_.weight.empty()) +
        static_cast<int>(!config_.picker.empty()) + static_cast<int>(!config_.split.empty());
    if (forms != 1)
      return fail(
          path_,
          fmt::format("must have one of set, weight, picker and split (got {} of them)", forms));
    if (!config_.range.empty() &&
        (config_.range.size() != 2 || !(config_.range[0] < config_.range[1])))
      return fail(path_ + ".range", "must be the lowest and the highest number: [0, 10]");
    if (config_.log && (config_.range.empty() || config_.range[0] <= 0))
      return fail(path_ + ".log", "needs a range of numbers above 0");
    std::optional<Knob> knob = !config_.set.empty()      ? set_knob()
                               : !config_.weight.empty() ? scorer_knob()
                               : !config_.picker.empty() ? profile_picker()
                                                         : pool_split();
    if (!knob) return std::nullopt;
    if (!config_.name.empty()) knob->name = config_.name;
    knob->where = provenance_.nearest(path_);
    if (knob->values.size() < 2)
      return fail(path_, "has no value but the published one, " + knob->values.front().text);
    return knob;
  }

 private:
  std::optional<Knob> fail(const std::string& path, const std::string& what,
                           const std::string& hint = {}) {
    diagnostics_.error(provenance_.nearest(path), path, what, hint);
    return std::nullopt;
  }

  bool is_real(const std::string& published) const {
    const auto broken = [](double v) { return v != std::round(v); };
    return std::ranges::any_of(config_.range, broken) || published.find('.') != std::string::npos;
  }

  /// The words of `values` or `range`; nothing when neither is given.
  std::vector<std::string> texts(const std::string& published, bool may_be_real) const {
    std::vector<std::string> out;
    if (!config_.range.empty())
      return texts_of(range_values(config_.range[0], config_.range[1], config_.step, config_.log,
                                   !may_be_real && !is_real(published)));
    if (config_.values.root != nullptr)
      for (const ConfigNode::Ptr& item : config_.values.root->items()) out.push_back(item->text());
    return out;
  }

  std::optional<Knob> set_knob() {
    std::vector<std::string> paths = {config_.set};
    paths.insert(paths.end(), config_.also.begin(), config_.also.end());
    for (const std::string& path : paths) {
      const std::string at = path_ + (path == config_.set ? ".set" : ".also");
      const std::optional<std::vector<PathStep>> steps = parse_key_path(path);
      if (!steps) return fail(at, "is not a key path (got " + printable(path) + ")");
      // Less load is no better deployment, and another seed is none at all.
      if (steps->front().key != "cluster" && steps->front().key != "routing")
        return fail(at, "is no key of a deployment (got " + printable(path) + ")",
                    "a knob is a key of cluster or routing; `set:` and `shift:` change the load");
    }
    const std::string published = published_at(*parse_key_path(config_.set));
    const ConfigNode::Ptr& list = config_.values.root;
    if (!config_.range.empty())
      return path_knob(config_.set, paths, texts(published, false), published,
                       provenance_.nearest(path_));
    if (list == nullptr || !list->is_sequence() || list->items().empty())
      return fail(path_, "has no values", "give values: [1, 2, 4], or range: [1, 4]");
    std::vector<KnobValue> values;
    for (const ConfigNode::Ptr& item : list->items()) {
      KnobValue& value = values.emplace_back(
          KnobValue{.text = item->is_scalar() ? item->text() : flow_text(*item)});
      for (const std::string& path : paths) {
        value.assignments.push_back(make_assignment(path, {}, item->where()));
        value.assignments.back().value = item;
      }
    }
    return finish_knob(config_.set, std::move(values), published);
  }

  /// The value of the key: in the scenario as written, in the router's document, or by default.
  std::string published_at(const std::vector<PathStep>& steps) const {
    const LoadedVariant& variant = source_.variant;
    ConfigNode::Ptr node = node_at(variant.node, steps);
    const bool in_picker = steps.size() > 2 && steps[0].key == "routing" &&
                           steps[1].key == "endpoint_picker" && source_.picker;
    if (in_picker) node = node_at(source_.picker->root, std::span(steps).subspan(2));
    if (node == nullptr && !in_picker) {
      sim::Scenario scenario = variant.scenario;
      for (std::size_t i = 0; i < source_.plan.pools.size(); ++i) {
        sim::EngineConfig& engine = scenario.cluster.pools[i].engine;
        engine.max_num_seqs = source_.plan.pools[i].rules.max_num_seqs;
        if (engine.kind == sim::EngineKind::kVllm)
          engine.max_num_batched_tokens = source_.plan.pools[i].rules.max_num_batched_tokens;
      }
      node = node_at(to_node(describe_values([&](Describer& d) { describe(d, scenario); })), steps);
    }
    if (node == nullptr) return "default";
    return node->is_scalar() ? node->text() : flow_text(*node);
  }

  std::optional<Knob> scorer_knob() {
    if (!source_.picker) return no_document("weight");
    const PickerReader reader(source_);
    std::vector<ScorerPlace> found;
    std::vector<std::string> names;
    for (ScorerPlace& scorer : reader.scorers()) {
      names.push_back(scorer.name);
      if (scorer.name != config_.weight) continue;
      if (config_.profile.empty() || config_.profile == scorer.profile)
        found.push_back(std::move(scorer));
    }
    if (found.empty())
      return fail(path_ + ".weight",
                  "is no scorer of the document (got " + printable(config_.weight) + ")",
                  did_you_mean(config_.weight, names));
    if (found.size() > 1)
      return fail(path_ + ".weight", "is a scorer of several profiles", "say profile: NAME");
    const std::string published = number_text(found.front().weight);
    const std::vector<std::string> given = texts(published, true);
    return weight_knob(reader, found.front(), given.empty() ? texts_of(kWeights) : given);
  }

  std::optional<Knob> profile_picker() {
    if (!source_.picker) return no_document("picker");
    const PickerReader reader(source_);
    std::vector<std::string> names;
    for (const policies::ProfileSpec& profile : reader.config().profiles) {
      names.push_back(profile.name);
      if (profile.name != config_.picker) continue;
      const PluginSpec* const spec = reader.picker_of(profile);
      if (spec == nullptr)
        return fail(path_ + ".picker", "is a profile without a picker of its own");
      std::vector<std::string> types = texts(spec->type, true);
      if (types.empty()) types.assign(kPickers.begin(), kPickers.end());
      return type_knob(reader, *spec, "picker of " + profile.name, types);
    }
    return fail(path_ + ".picker",
                "is no profile of the document (got " + printable(config_.picker) + ")",
                did_you_mean(config_.picker, names));
  }

  std::optional<Knob> pool_split() {
    const sim::PoolConfig* pools[2] = {nullptr, nullptr};
    if (config_.split.size() != 2)
      return fail(path_ + ".split", "must name two pools: [prefill, decode]");
    for (std::size_t i = 0; i < 2; ++i) {
      std::vector<std::string> names;
      for (const sim::ResolvedPool& pool : source_.plan.pools) {
        names.push_back(pool.config.name);
        if (pool.config.name == config_.split[i]) pools[i] = &pool.config;
      }
      if (pools[i] == nullptr)
        return fail(element_path(path_ + ".split", i),
                    "is no pool of the scenario (got " + printable(config_.split[i]) + ")",
                    did_you_mean(config_.split[i], names));
    }
    return split_knob(source_, *pools[0], *pools[1]);
  }

  std::optional<Knob> no_document(const std::string& key) {
    return fail(path_ + "." + key, "needs an EndpointPickerConfig, and the variant has none");
  }

  const TuneKnobConfig& config_;
  const std::string& path_;
  const KnobSource& source_;
  const Provenance& provenance_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::vector<double> range_values(double low, double high, std::optional<double> step, bool log,
                                 bool whole) {
  constexpr int kSteps = 20;
  constexpr int kRatios = 6;
  std::set<double> numbers;
  const auto add = [&](double v) { numbers.insert(whole ? std::round(v) : with_digits(v, 12)); };
  if (log) {
    for (int i = 0; i <= kRatios; ++i) add(low * std::pow(high / low, i / double{kRatios}));
  } else {
    const double by = step.value_or((high - low) / kSteps);
    for (int i = 0; low + i * by <= high + 1e-9 * by && i <= 1000; ++i) add(low + i * by);
  }
  return {numbers.begin(), numbers.end()};
}

std::vector<Knob> derive_knobs(const KnobSource& source) {
  std::vector<Knob> knobs;
  if (source.picker)
    add_picker_knobs(source, knobs);
  else
    add_balancer_knobs(source, knobs);
  add_split_knob(source, knobs);
  add_engine_knobs(source, knobs);
  return knobs;
}

std::optional<Knob> read_knob(const TuneKnobConfig& config, const std::string& path,
                              const KnobSource& source, const Provenance& provenance,
                              Diagnostics& diagnostics) {
  return KnobReader(config, path, source, provenance, diagnostics).read();
}

}  // namespace routesim::tools
