// Which release a document was written for, as far as its shape tells.

#include "policies/config/document_loader.h"

namespace routesim::policies {
namespace {

/// Evidence in a document's shape: not before `lower`, not after `upper`, each with its reason.
struct Evidence {
  Era lower = Era::kV0_3_2;
  Era upper = Era::kLate2026;
  std::string lower_reason, upper_reason;

  void not_before(Era era, const std::string& reason) {
    if (era <= lower) return;
    lower = era;
    lower_reason = reason;
  }
  void not_after(Era era, const std::string& reason) {
    if (era >= upper) return;
    upper = era;
    upper_reason = reason;
  }
};

bool given(const ConfigNode& map, std::string_view key) { return map.find(key) != nullptr; }

void read_precise(const PluginSpec& spec, Evidence& e) {
  const ConfigNode& p = *spec.parameters;
  if (given(p, "tokenProcessorConfig"))
    e.not_before(Era::kV0_5_0, "tokenProcessorConfig beside indexerConfig");
  if (given(p, "speculativeIndexing")) e.not_before(Era::kV0_7_0, "speculativeIndexing");
  if (const ConfigNode* tp = p.child("tokenProcessorConfig")) {
    if (given(*tp, "hashAlgorithm")) e.not_before(Era::kAug2026, "hashAlgorithm");
    if (given(*tp, "blockSizeTokens")) e.not_before(Era::kMay2026, "blockSizeTokens");
  }
  const ConfigNode* indexer = p.child("indexerConfig");
  if (indexer == nullptr) return;
  if (given(*indexer, "tokenProcessorConfig"))
    e.not_after(Era::kV0_4_0, "tokenProcessorConfig inside indexerConfig");
  if (given(*indexer, "prefixStoreConfig")) e.not_after(Era::kV0_5_0, "prefixStoreConfig");
  const ConfigNode* pool = indexer->child("tokenizersPoolConfig");
  if (pool == nullptr) return;
  // Producers and token-producer replaced tokenizers inside the scorer in the summer of 2026.
  e.not_after(Era::kMay2026, "tokenizersPoolConfig");
  if (given(*pool, "huggingFaceToken") || given(*pool, "tokenizersCacheDir"))
    e.not_after(Era::kV0_3_2, "Hugging Face fields directly in tokenizersPoolConfig");
  if (given(*pool, "hf")) {
    if (!pool->child("hf")->is_null()) e.not_before(Era::kV0_4_0, "tokenizersPoolConfig.hf");
    e.not_after(Era::kV0_5_0, "tokenizersPoolConfig.hf");
  }
  if (given(*pool, "uds")) e.not_before(Era::kV0_5_0, "tokenizersPoolConfig.uds");
  if (given(*pool, "local")) e.not_after(Era::kV0_6_0, "tokenizersPoolConfig.local");
}

void read_plugin(const PluginSpec& spec, Evidence& e) {
  const std::string& t = spec.type;
  const ConfigNode& p = *spec.parameters;
  if (t == "precise-prefix-cache-scorer" || t == "precise-prefix-cache-producer")
    read_precise(spec, e);
  if (t == "pd-profile-handler") {
    if (given(p, "deciderPluginName")) e.not_before(Era::kV0_6_0, "deciderPluginName");
    for (const char* key : {"threshold", "hashBlockSize"})
      if (given(p, key)) e.not_after(Era::kV0_5_0, "pd-profile-handler " + std::string(key));
  }
  if (t == "prefix-based-pd-decider" || t == "always-disagg-pd-decider")
    e.not_before(Era::kV0_6_0, t);
  if (t == "active-request-scorer" && (given(p, "idleThreshold") || given(p, "maxBusyScore")))
    e.not_before(Era::kV0_7_0, "active-request-scorer idleThreshold or maxBusyScore");
  if (t == "prefix-cache-scorer" && (given(p, "lruCapacityPerServer") || given(p, "blockSize") ||
                                     given(p, "maxPrefixBlocksToMatch") || given(p, "autoTune")))
    e.not_after(Era::kV0_7_0, "prefix-cache-scorer with index parameters");
  if (t == "tokenizer") {
    e.not_before(Era::kV0_7_0, "plugin type tokenizer");
    e.not_after(Era::kMay2026, "plugin type tokenizer");
  }
  if (t == "disagg-profile-handler") e.not_before(Era::kV0_7_0, "plugin type " + t);
  if (t == "token-producer" || t == "inflight-load-producer" || t == "approx-prefix-cache-producer")
    e.not_before(Era::kMay2026, "plugin type " + t);
  if (t == "precise-prefix-cache-producer" || t == "p2p-source-producer")
    e.not_before(Era::kAug2026, "plugin type " + t);
  if (given(p, "reusableTokensProducerName"))
    e.not_before(Era::kSep2026, "context-length-aware reusableTokensProducerName");
  if (given(p, "prefixMatchInfoProducerName") || given(p, "inFlightLoadProducerName"))
    e.not_before(Era::kMay2026, "a producer named by a parameter");
  if (t == "prefix-cache-affinity-filter") {
    if (given(p, "maxTokensInFlightPenalty"))
      e.not_after(Era::kMay2026, "maxTokensInFlightPenalty");
    for (const char* key : {"ttftSource", "peakPrefillThroughput"})
      if (given(p, key))
        e.not_before(Era::kAug2026, "prefix-cache-affinity-filter " + std::string(key));
  }
  if (given(p, "prefixPluginType") || given(p, "prefixPluginName"))
    e.not_after(Era::kV0_7_0, "prefixPluginType or prefixPluginName");
}

/// From v0.6.0 on pd-profile-handler does not start without the decider that it names, and the
/// default one must be declared as well. Before, it had none.
void read_deciders(const EndpointPickerConfig& config, Evidence& e) {
  if (config.api_version != "inference.networking.x-k8s.io/v1alpha1") return;
  for (const PluginSpec& spec : config.plugins) {
    if (spec.type != "pd-profile-handler" || given(*spec.parameters, "deciderPluginName") ||
        config.find("prefix-based-pd-decider") != nullptr)
      continue;
    if (config.find("always-disagg-pd-decider") != nullptr)
      e.not_after(Era::kV0_6_0, "pd-profile-handler with always-disagg-pd-decider by default");
    else
      e.not_after(Era::kV0_5_0, "pd-profile-handler without a decider");
  }
}

bool fractional(double w) { return w != static_cast<double>(static_cast<std::int64_t>(w)); }

}  // namespace

void infer_era(const ConfigNode& root, EndpointPickerConfig& config,
               const DocumentReferences& references, Diagnostics& diagnostics) {
  Evidence e;
  if (config.api_version == "llm-d.ai/v1alpha1")
    e.not_before(Era::kMay2026, "apiVersion llm-d.ai/v1alpha1");
  if (config.api_version == "llm-d.ai/v1") e.not_before(Era::kAug2026, "apiVersion llm-d.ai/v1");
  if (config.distribution == Distribution::kHeimdall)
    e.not_after(Era::kV0_6_0, "Heimdall generation 1");
  for (const PluginSpec& spec : config.plugins) read_plugin(spec, e);
  read_deciders(config, e);
  for (const ProfileSpec& profile : config.profiles)
    for (const PluginReference& r : profile.plugins)
      if (r.weight && fractional(*r.weight)) e.not_before(Era::kV0_6_0, "a fractional weight");
  if (!references.old_name.empty()) e.not_after(Era::kV0_3_2, references.old_name);
  if (references.inline_detector) e.not_after(Era::kV0_7_0, "thresholds in saturationDetector");

  if (e.lower > e.upper) {
    diagnostics.warning(root.where(), "",
                        "mixes releases: " + e.lower_reason + " needs " +
                            std::string(name(e.lower)) + " or later, " + e.upper_reason +
                            " ended with " + std::string(name(e.upper)),
                        "set the era");
    config.era = e.lower;
    config.era_origin = "inferred: " + e.lower_reason;
    return;
  }
  const bool bounded = !e.upper_reason.empty();
  if (bounded && config.distribution == Distribution::kHeimdall && e.lower < Era::kV0_5_0) {
    // Early Heimdall has the schema of v0.3.x throughout: SHA-256 keys, unweighted tiers.
    config.era = Era::kV0_3_2;
    config.era_origin = e.upper <= Era::kV0_4_0 ? "inferred: Heimdall with " + e.upper_reason
                                                : "default: Heimdall generation 1";
  } else if (bounded) {
    config.era = e.upper;
    config.era_origin = "inferred: " + e.upper_reason;
  } else if (config.api_version == "inference.networking.x-k8s.io/v1alpha1" &&
             e.lower <= Era::kV0_7_0) {
    config.era = Era::kV0_7_0;
    config.era_origin = "default: last releases before apiVersion llm-d.ai/v1alpha1";
  } else if (e.lower > Era::kAug2026) {
    config.era = e.lower;
    config.era_origin = "inferred: " + e.lower_reason;
  } else {
    config.era = Era::kAug2026;
    config.era_origin = "default: the head of August 2026; later ones differ in pulls and tiers";
  }
}

}  // namespace routesim::policies
