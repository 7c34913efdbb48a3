#include "sim/plan/unsupplied_inputs.h"

#include <algorithm>
#include <array>

#include "base/scalar_parse.h"
#include "policies/config/make_scheduler.h"

namespace routesim::sim {
namespace {

constexpr std::string_view kPredictions =
    "no latency predictor stands beside the router (routing.latency_predictor)";
constexpr std::string_view kGoals =
    "the load sends no x-llm-d-slo-ttft-ms or -tpot-ms (inference-perf's api.headers)";
constexpr std::array<std::string_view, 4> kGoalHeaders = {
    "x-llm-d-slo-ttft-ms", "x-llm-d-slo-tpot-ms", "x-slo-ttft-ms", "x-slo-tpot-ms"};
constexpr std::string_view kHeaders =
    "the load sends no such header (inference-perf's api.headers)";
constexpr std::string_view kMultimodal = "multimodal prompts are not simulated";
constexpr std::string_view kTopology = "the topology of servers is not simulated";
constexpr std::string_view kAttributes = "endpoint attributes are not simulated";
constexpr std::string_view kAllScoreZero = "every endpoint scores 0";

/// Nothing fills these fields of RequestView and EndpointTable (Router::view, endpoint_info).
struct Unsupplied {
  std::string_view type, lacks, then;
};
constexpr std::array<Unsupplied, 18> kUnsupplied = {{
    {"predicted-latency-producer", kPredictions, "it estimates nothing"},
    {"latency-scorer", kPredictions,
     "it falls back to its composite score of KV usage, queue and prefix"},
    {"slo-headroom-tier-filter", kPredictions, "it keeps every endpoint"},
    {"latency-slo-admitter", kPredictions, "it refuses nothing"},
    {"prefix-cache-affinity-filter", kPredictions,
     "it never gives up stickiness for a shorter time to first token"},
    {"slo-deadline-ordering-policy", kGoals, "it orders by arrival"},
    {"mm-embeddings-cache-scorer", kMultimodal, kAllScoreZero},
    {"mm-embeddings-cache-producer", kMultimodal, "it matches nothing"},
    {"always-disagg-multimodal-decider", kMultimodal, "it never disaggregates"},
    {"header-label-affinity-scorer", kHeaders, kAllScoreZero},
    {"header-profile-handler", kHeaders, "it always runs its default profile"},
    {"header-based-testing-filter", kHeaders, "it keeps every endpoint"},
    {"endpoint-attribute-scorer", kAttributes, kAllScoreZero},
    {"endpoint-attribute-filter", kAttributes, "every value is missing to it"},
    {"topology-affinity-filter", kTopology, "it keeps no endpoint once the other stage has one"},
    {"topology-affinity-scorer", kTopology, kAllScoreZero},
    {"kv-cache-hint", "engines that take hints of retention are not simulated", "it does nothing"},
    {"kv-cache-hint-v2", "engines that take hints of retention are not simulated",
     "it does nothing"},
}};

const Unsupplied* find(std::string_view type) {
  for (const Unsupplied& u : kUnsupplied)
    if (u.type == type) return &u;
  return nullptr;
}

/// The inputs that a plugin lacks where predictions are there and goals are not.
constexpr std::array<Unsupplied, 2> kWithoutGoals = {{
    {"slo-headroom-tier-filter", kGoals, "it keeps every endpoint"},
    {"latency-slo-admitter", kGoals, "it refuses nothing"},
}};

bool sends_goals(std::span<const std::string> headers) {
  return std::any_of(headers.begin(), headers.end(), [](const std::string& sent) {
    return std::any_of(kGoalHeaders.begin(), kGoalHeaders.end(),
                       [&](std::string_view goal) { return policies::same_header(sent, goal); });
  });
}

/// The input that `spec` lacks in a run with these inputs, or nullptr.
const Unsupplied* lacking(const policies::PluginSpec& spec, const SuppliedInputs& supplied) {
  const Unsupplied* u = find(spec.type);
  if (u == nullptr) return nullptr;
  const bool goals = sends_goals(supplied.headers);
  if (u->lacks == kGoals) return goals ? nullptr : u;
  if (u->lacks != kPredictions || !supplied.predictions) return u;
  for (const Unsupplied& without : kWithoutGoals)
    if (without.type == spec.type && !goals) return &without;
  return nullptr;
}

/// The header that decides for a plugin, or "".
std::string deciding_header(const policies::PluginSpec& spec) {
  if (spec.type == "header-based-testing-filter") return "test-epp-endpoint-selection";
  if (spec.type != "header-profile-handler" && spec.type != "header-label-affinity-scorer")
    return {};
  const ConfigNode* name = spec.parameters->child("headerName");
  if (name != nullptr && name->is_text()) return name->text();
  return spec.type == "header-profile-handler" ? "EPP-Profile" : "";
}

/// prefix-cache-affinity-filter reads predictions only where its document has them made.
bool asks_for_it(const policies::EndpointPickerConfig& config, const policies::PluginSpec& spec) {
  if (spec.type != "prefix-cache-affinity-filter") return true;
  if (config.era > policies::Era::kMay2026) {
    const ConfigNode* source = spec.parameters->child("ttftSource");
    return source != nullptr && source->is_text() && source->text() == "latencyPredictor";
  }
  for (const policies::PluginSpec& other : config.plugins)
    if (other.type == "predicted-latency-producer") return true;
  return false;
}

bool is_precise(const policies::PluginSpec& spec) {
  return spec.type == "precise-prefix-cache-producer" || spec.type == "precise-prefix-cache-scorer";
}

/// The path of a plugin in the file that holds the document at `path`.
std::string path_of(const policies::PluginSpec& spec, const std::string& path) {
  return path.empty() ? spec.path : path + "." + spec.path;
}

/// Whether the prompts of the document are rendered by the model's own tokenizer.
bool has_real_tokens(const policies::EndpointPickerConfig& config) {
  for (const policies::PluginSpec& spec : config.plugins) {
    if (spec.type != "token-producer" && spec.type != "tokenizer") continue;
    for (const char* key : {"vllm", "modelName", "udsTokenizerConfig"})
      if (spec.parameters->find(key) != nullptr) return true;
  }
  return false;
}

// llm-d-router pull request 1445 (June 2026) made the estimate the default, issue 1471 says so.
void warn_estimated_tokens(const policies::EndpointPickerConfig& config, const std::string& path,
                           Diagnostics& diagnostics) {
  if (config.era <= policies::Era::kMay2026 || has_real_tokens(config)) return;
  for (const policies::PluginSpec& spec : config.plugins) {
    if (!is_precise(spec) || spec.implicit) continue;
    diagnostics.warning(
        spec.where, path_of(spec, path),
        "plugin '" + spec.name +
            "' has no token-producer with a tokenizer: upstream the default estimate makes tokens "
            "that never match the engines', so nothing hits; simulated are the engines' own tokens",
        "declare a token-producer with modelName and vllm, before it");
  }
}

// No event names another tier while engines keep KV in GPU memory alone.
void warn_other_tiers(const policies::EndpointPickerConfig& config, const std::string& path,
                      Diagnostics& diagnostics) {
  for (const policies::PluginSpec& spec : config.plugins) {
    if (!is_precise(spec)) continue;
    const ConfigNode* indexer = spec.parameters->child("indexerConfig");
    const ConfigNode* tiers =
        indexer != nullptr ? indexer->child("kvCacheBackendConfigs") : nullptr;
    if (tiers == nullptr || !tiers->is_sequence()) continue;
    std::string others;
    for (const ConfigNode::Ptr& tier : tiers->items()) {
      const ConfigNode* name = tier->child("name");
      if (name != nullptr && name->is_text() && name->text() != "gpu")
        others += (others.empty() ? "" : ", ") + name->text();
    }
    if (others.empty()) continue;
    diagnostics.warning(tiers->where(), path_of(spec, path),
                        "plugin '" + spec.name +
                            "' weighs KV blocks in other tiers than the GPU (" + others +
                            "), and no pool has kv_tiers: these weights have no effect",
                        "give the pool engine.kv_tiers, if its servers have tiers");
  }
}

// Engines pull through their tiers only.
void warn_pulls(const policies::EndpointPickerConfig& config, const std::string& path,
                Diagnostics& diagnostics) {
  for (const policies::PluginSpec& spec : config.plugins)
    if (spec.type == "p2p-source-producer")
      diagnostics.warning(spec.where, path_of(spec, path),
                          "plugin '" + spec.name +
                              "' names servers to pull KV blocks from, and no pool has kv_tiers "
                              "to pull them through",
                          "give the pool engine.kv_tiers, if its servers have tiers");
}

/// Nothing asks an observer for new percentiles but dataLayer, and without streaming there is no
/// first token to observe (llm-d-router pull request 2371).
void warn_idle_observers(const policies::EndpointPickerConfig& config, const std::string& path,
                         bool streams, Diagnostics& diagnostics) {
  const std::optional<policies::Requirements> needed = policies::requirements(config);
  if (!needed) return;
  for (const policies::PluginSpec& spec : needed->plugins) {
    if (!spec.type.starts_with("latency-observer-producer")) continue;
    const auto& sources = config.data_layer.sources;
    const bool is_source = std::any_of(sources.begin(), sources.end(), [&](const auto& source) {
      return source.source.name == spec.name;
    });
    if (is_source && streams) continue;
    diagnostics.warning(
        spec.where, spec.implicit ? path : path_of(spec, path),
        "plugin '" + spec.name + "' observes nothing, so every endpoint scores 1: " +
            (is_source ? "the load does not stream its answers" : "it is no source of dataLayer"),
        is_source ? "" : "list it under dataLayer.sources");
  }
}

bool is_approximate(const policies::PluginSpec& spec) {
  return spec.type == "approx-prefix-cache-producer" ||
         (spec.type == "prefix-cache-scorer" &&
          spec.parameters->find("prefixMatchInfoProducerName") == nullptr);
}

// llm-d's guide to tiered prefix caches has one index per tier. The other tier's has a capacity of
// its own, since engines report the blocks of their GPUs only.
void warn_second_index(const policies::EndpointPickerConfig& config, const std::string& path,
                       Diagnostics& diagnostics) {
  const auto indexes = std::count_if(
      config.plugins.begin(), config.plugins.end(), [](const policies::PluginSpec& spec) {
        return spec.type == "approx-prefix-cache-producer" ||
               (is_approximate(spec) && spec.parameters->find("lruCapacityPerServer") != nullptr);
      });
  for (const policies::PluginSpec& spec : config.plugins) {
    const ConfigNode* capacity = spec.parameters->child("lruCapacityPerServer");
    if (indexes < 2 || !is_approximate(spec) || capacity == nullptr) continue;
    const ConfigNode* tune = spec.parameters->child("autoTune");
    const bool fixed = tune != nullptr && parse_bool(*tune).value == false;
    diagnostics.warning(
        capacity->where(), path_of(spec, path),
        "plugin '" + spec.name +
            "' keeps a second prefix index, as of KV in CPU memory, and no pool has kv_tiers: " +
            (fixed ? "it expects blocks that no server has any more"
                   : "its lruCapacityPerServer has no effect (autoTune takes the GPU's blocks)"),
        "give the pool engine.kv_tiers, if its servers have tiers");
  }
}

std::string text_of(const Unsupplied& u) {
  return std::string(u.lacks) + ", so " + std::string(u.then);
}

}  // namespace

std::string unsupplied_input(std::string_view plugin_type) {
  const Unsupplied* u = find(plugin_type);
  // A scenario and its load can supply these.
  if (u != nullptr && (u->lacks == kPredictions || u->lacks == kGoals)) return {};
  return u != nullptr ? text_of(*u) : std::string();
}

std::vector<std::string> headers_read(const policies::EndpointPickerConfig& config) {
  std::vector<std::string> names = {"x-llm-d-inference-fairness-id",
                                    "x-gateway-inference-fairness-id", "prefer"};
  for (const policies::PluginSpec& spec : config.plugins)
    if (std::string name = deciding_header(spec); !name.empty()) names.push_back(std::move(name));
  const std::optional<policies::Requirements> needed = policies::requirements(config);
  if (!needed) return names;
  const bool deadlines =
      std::any_of(config.plugins.begin(), config.plugins.end(),
                  [](const auto& spec) { return spec.type == "slo-deadline-ordering-policy"; });
  if (needed->signals.predictions || deadlines)
    names.insert(names.end(), kGoalHeaders.begin(), kGoalHeaders.end());
  for (const auto* more :
       {&needed->signals.session_id_headers, &needed->signals.session_token_headers})
    names.insert(names.end(), more->begin(), more->end());
  return names;
}

void warn_unsupplied_inputs(const policies::EndpointPickerConfig& config, const std::string& path,
                            Diagnostics& diagnostics, const SuppliedInputs& supplied) {
  warn_estimated_tokens(config, path, diagnostics);
  warn_idle_observers(config, path, supplied.streams, diagnostics);
  if (!supplied.tiers) {
    warn_other_tiers(config, path, diagnostics);
    warn_second_index(config, path, diagnostics);
    warn_pulls(config, path, diagnostics);
  }
  for (const policies::PluginSpec& spec : config.plugins) {
    const Unsupplied* u = lacking(spec, supplied);
    if (u == nullptr || spec.implicit || !asks_for_it(config, spec)) continue;
    const std::string header = deciding_header(spec);
    if (std::any_of(supplied.headers.begin(), supplied.headers.end(),
                    [&](const std::string& name) { return policies::same_header(name, header); }))
      continue;
    const std::string at = path_of(spec, path);
    diagnostics.warning(spec.where, at,
                        "plugin '" + spec.name + "' runs without its input: " + text_of(*u));
  }
}

}  // namespace routesim::sim
