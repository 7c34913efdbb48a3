// Profile handlers and deciders: which profiles run, and what a decision is made of.
// llm-d-router pkg/epp/framework/plugins/scheduling/profilehandler.
#pragma once

#include "base/text.h"
#include "policies/build_context.h"

namespace routesim::policies {

struct PdProfileParameters {
  std::string decode_profile = "decode", prefill_profile = "prefill";
  std::int64_t primary_port = 0;
  std::optional<std::string> decider;
  std::string prefix_producer, prefix_plugin_name, prefix_plugin_type;
  double threshold = 0;
  std::int64_t hash_block_size = 64;
};
inline void describe(Describer& d, PdProfileParameters& p) {
  field(d, {"decodeProfile", "Profile that picks the decode endpoint."}, p.decode_profile);
  field(d, {"prefillProfile", "Profile that picks the prefill endpoint."}, p.prefill_profile);
  field(d, {"primaryPort", "Port of the data-parallel side-car; 0 = none."}, p.primary_port,
        IntRange{0, 65535});
  field(d, {"deciderPluginName", "Decider instance (v0.6.0 and later)."}, p.decider);
  field(d, {"prefixMatchInfoProducerName", "Accepted; deciders read the default producer."},
        p.prefix_producer);
  field(d, {"prefixPluginName", "Prefix plugin of the threshold (up to v0.5.0)."},
        p.prefix_plugin_name);
  field(d, {"prefixPluginType", "Its type (default prefix-cache-scorer)."}, p.prefix_plugin_type);
  field(d, {"threshold", "Uncached bytes from which prefill is separate; 0 = always."}, p.threshold,
        RealRange{0});
  field(d, {"hashBlockSize", "Bytes per matched block for the threshold."}, p.hash_block_size,
        IntRange{1});
}

struct DataParallelParameters {
  std::int64_t primary_port = 8000;
};
inline void describe(Describer& d, DataParallelParameters& p) {
  field(d, {"primaryPort", "Port of the side-car that forwards to the rank."}, p.primary_port,
        IntRange{0, 65535});
}

struct PrefixDeciderParameters {
  std::int64_t non_cached_tokens = 0, prompt_tokens = 0;
};
inline void describe(Describer& d, PrefixDeciderParameters& p) {
  field(d,
        {"nonCachedTokens",
         "Uncached tokens from which a prefill endpoint is used; 0 = never "
         "(v0.6.0: always)."},
        p.non_cached_tokens, IntRange{0});
  field(d, {"promptTokens", "Prompts shorter than this are never disaggregated."}, p.prompt_tokens,
        IntRange{0});
}

struct DisaggHeadersParameters {
  std::string prefill_profile = "prefill", encode_profile = "encode";
};
inline void describe(Describer& d, DisaggHeadersParameters& p) {
  field(d, {"prefillProfile", "Profile that picks the prefill endpoint."}, p.prefill_profile);
  field(d, {"encodeProfile", "Profile that picks the encode endpoints."}, p.encode_profile);
}

struct DisaggProfiles {
  std::optional<std::string> decode, prefill, encode;
};
inline void describe(Describer& d, DisaggProfiles& p) {
  field(d, {"decode", "Profile of the decode stage (default decode)."}, p.decode);
  field(d, {"prefill", "Profile of the prefill stage (default prefill)."}, p.prefill);
  field(d, {"encode", "Profile of the encode stage (default encode)."}, p.encode);
}

struct DisaggDeciders {
  std::optional<std::string> prefill, encode;
};
inline void describe(Describer& d, DisaggDeciders& p) {
  field(d, {"prefill", "Decider instance of the prefill stage; none = skipped."}, p.prefill);
  field(d, {"encode", "Decider instance of the encode stage; none = skipped."}, p.encode);
}

struct DisaggProfileParameters {
  std::string stage_order = "decode-first";
  std::optional<DisaggProfiles> profiles;
  std::optional<DisaggDeciders> deciders;
  std::optional<std::string> decode_profile, prefill_profile, encode_profile;
  std::optional<std::string> prefill_decider, decider, encode_decider;
};
inline void describe(Describer& d, DisaggProfileParameters& p) {
  field(d, {"stageOrder", "decode-first or prefill-first; empty = decode-first."}, p.stage_order);
  field(d, {"profiles", "Names of the stages' profiles."}, p.profiles);
  field(d, {"deciders", "Deciders of the optional stages."}, p.deciders);
  field(d, {"decodeProfile", "Older name of profiles.decode."}, p.decode_profile);
  field(d, {"prefillProfile", "Older name of profiles.prefill."}, p.prefill_profile);
  field(d, {"encodeProfile", "Older name of profiles.encode."}, p.encode_profile);
  field(d, {"prefillDeciderPluginName", "Older name of deciders.prefill."}, p.prefill_decider);
  field(d, {"deciderPluginName", "The same, as pd-profile-handler called it."}, p.decider);
  field(d, {"encodeDeciderPluginName", "Older name of deciders.encode."}, p.encode_decider);
}

struct HeaderProfileParameters {
  std::string header_name = "EPP-Profile", default_profile = "decode";
};
inline void describe(Describer& d, HeaderProfileParameters& p) {
  field(d, {"headerName", "Request header that names the profile to run; empty = EPP-Profile."},
        p.header_name);
  field(d, {"defaultProfile", "Profile without that header; empty = decode."}, p.default_profile);
}

/// Index of a profile by name, or -1.
inline std::int32_t profile_index(ProfileNames profiles, std::string_view name) {
  for (std::size_t i = 0; i < profiles.size(); ++i)
    if (profiles[i] == name) return static_cast<std::int32_t>(i);
  return -1;
}

inline bool has_run(std::span<const ProfileResult> results, std::int32_t index) {
  return index >= 0 && results[static_cast<std::size_t>(index)].state != ProfileState::kNotRun;
}

inline std::size_t count_run(std::span<const ProfileResult> results) {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(),
                    [](const ProfileResult& r) { return r.state != ProfileState::kNotRun; }));
}

// Names the rank in a header and sends the request to the side-car's port instead.
inline void use_primary_port(Cycle& cycle, Decision& decision, EndpointRow target,
                             std::int32_t port) {
  decision.headers.emplace_back("x-data-parallel-host-port",
                                cycle.endpoints().info(target).host_port());
  decision.destination_port = port;
}

inline const ProfileResult* result_at(const Decision& decision, std::int32_t index) {
  return index < 0 ? nullptr : &decision.profiles[static_cast<std::size_t>(index)];
}

inline void set_header(Decision& decision, std::string_view name, std::string value) {
  std::erase_if(decision.headers, [name](const auto& header) { return header.first == name; });
  if (!value.empty()) decision.headers.emplace_back(name, std::move(value));
}

/// Tells the decode endpoint's side-car where to prefill; without the header it does so itself.
inline void name_prefill(Cycle& cycle, Decision& decision, const ProfileResult* prefill) {
  const bool found = prefill != nullptr && prefill->has_target();
  decision.prefill = found ? EndpointId(prefill->targets.front()) : EndpointId();
  set_header(decision, "x-prefiller-host-port",
             found ? cycle.endpoints().info(prefill->targets.front()).host_port() : "");
}

/// The same for the endpoints that encode images.
inline void name_encoders(Cycle& cycle, Decision& decision, const ProfileResult* encode) {
  decision.encode_targets.clear();
  if (encode != nullptr && encode->has_target()) decision.encode_targets = encode->targets;
  std::string hosts;
  for (const EndpointRow r : decision.encode_targets) {
    if (!hosts.empty()) hosts += ',';
    hosts += cycle.endpoints().info(r).host_port();
  }
  set_header(decision, "x-encoder-hosts-ports", std::move(hosts));
}

/// The characters that Go's strings.TrimSpace takes away.
inline constexpr std::string_view kSpace = " \t\r\n\v\f";

/// single-profile-handler.
class SingleProfileHandler final : public ProfileHandler {
 public:
  void next(Cycle&, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override {
    if (count_run(results) > 0) return;
    for (std::uint32_t i = 0; i < profiles.size(); ++i) run.push_back(i);
  }
  const char* process(Cycle&, ProfileNames, Decision& decision) const override {
    if (count_run(decision.profiles) != 1)
      return "single profile handler supports exactly one profile";
    for (std::size_t i = 0; i < decision.profiles.size(); ++i) {
      if (decision.profiles[i].state == ProfileState::kFailed)
        return "the profile found no endpoint";
      if (decision.profiles[i].ok()) decision.primary_profile = static_cast<std::int32_t>(i);
    }
    return nullptr;
  }
};

/// data-parallel-profile-handler: one profile; the side-car on primaryPort forwards to the rank.
class DataParallelProfileHandler final : public ProfileHandler {
 public:
  DataParallelProfileHandler(const DataParallelParameters& p, const PluginSpec&, BuildContext&)
      : primary_port_(static_cast<std::int32_t>(p.primary_port)) {}
  std::int32_t primary_port() const { return primary_port_; }
  void next(Cycle&, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override {
    if (profiles.size() == 1 && count_run(results) == 0) run.push_back(0);
  }
  const char* process(Cycle& cycle, ProfileNames, Decision& decision) const override {
    if (count_run(decision.profiles) != 1)
      return "data parallel profile handler supports exactly one profile";
    for (std::size_t i = 0; i < decision.profiles.size(); ++i) {
      const ProfileResult& result = decision.profiles[i];
      if (result.state == ProfileState::kNotRun) continue;
      if (!result.has_target()) return "the profile found no endpoint";
      decision.primary_profile = static_cast<std::int32_t>(i);
      use_primary_port(cycle, decision, result.targets.front(), primary_port_);
    }
    return nullptr;
  }

 private:
  std::int32_t primary_port_;
};

/// header-profile-handler: runs the profile a request header names.
class HeaderProfileHandler final : public ProfileHandler {
 public:
  HeaderProfileHandler(const HeaderProfileParameters& p, const PluginSpec& spec,
                       BuildContext& context)
      : header_(trimmed(p.header_name, kSpace)),
        default_profile_(trimmed(p.default_profile, kSpace)) {
    context.needs().headers = true;
    if (header_.empty()) header_ = HeaderProfileParameters{}.header_name;
    if (default_profile_.empty()) default_profile_ = HeaderProfileParameters{}.default_profile;
    if (context.config().profiles.size() > 1 && !context.config().profile(default_profile_))
      context.error(spec, "defaultProfile",
                    "references undefined profile '" + default_profile_ + "'");
  }
  void next(Cycle& cycle, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override {
    if (count_run(results) > 0) return;
    if (profiles.size() == 1) return run.push_back(0);  // There is nothing to choose.
    const std::string_view asked = trimmed(cycle.request().header(header_).value_or(""), kSpace);
    const std::int32_t index = profile_index(profiles, asked.empty() ? default_profile_ : asked);
    if (index >= 0) run.push_back(static_cast<std::uint32_t>(index));
  }
  const char* process(Cycle&, ProfileNames, Decision& decision) const override {
    if (count_run(decision.profiles) == 0) return "the header names no scheduling profile";
    for (std::size_t i = 0; i < decision.profiles.size(); ++i)
      if (decision.profiles[i].ok()) decision.primary_profile = static_cast<std::int32_t>(i);
    return decision.primary_profile < 0 ? "the profile found no endpoint" : nullptr;
  }

 private:
  std::string header_, default_profile_;
};

/// always-disagg-pd-decider.
class AlwaysDecider final : public Decider {
 public:
  bool disaggregate(const Cycle&, std::optional<EndpointRow>) const override { return true; }
};

/// always-disagg-multimodal-decider.
class MultimodalDecider final : public Decider {
 public:
  bool disaggregate(const Cycle& cycle, std::optional<EndpointRow>) const override {
    return cycle.request().multimodal;
  }
};

/// The rule of prefix-based-pd-decider on numbers. `cached_tokens` is what the decode endpoint
/// holds, nothing when unknown. `zero_means_always`: nonCachedTokens 0 in v0.6.0.
inline bool disaggregate_by_prefix(const PrefixDeciderParameters& p, std::int64_t prompt_tokens,
                                   std::optional<std::int64_t> cached_tokens, bool endpoint_known,
                                   bool zero_means_always) {
  if (p.non_cached_tokens == 0) return zero_means_always;
  if (!endpoint_known) return false;
  if (prompt_tokens < p.prompt_tokens || prompt_tokens < p.non_cached_tokens) return false;
  if (!cached_tokens) return false;
  return prompt_tokens - *cached_tokens >= p.non_cached_tokens;
}

/// prefix-based-pd-decider.
class PrefixDecider final : public Decider {
 public:
  PrefixDecider(const PrefixDeciderParameters& p, const PluginSpec& spec, BuildContext& context)
      : parameters_(p),
        zero_means_always_(context.traits().decider_zero_disaggregates),
        bytes_per_four_(context.era() == Era::kV0_6_0) {
    (bytes_per_four_ ? context.needs().prompt_bytes : context.needs().prompt_tokens) = true;
    if (p.non_cached_tokens == 0) return;  // It never looks.
    if (context.traits().match_info_producers) {
      slot_ = context.prefix_slot_of("", spec);
      return;
    }
    for (const PluginSpec& other : context.config().plugins)
      if (other.type == "prefix-cache-scorer") slot_ = context.prefix_slot(other.name);
  }
  bool disaggregate(const Cycle& cycle, std::optional<EndpointRow> decode) const override {
    const RequestView& request = cycle.request();
    std::optional<std::int64_t> cached;
    if (decode && slot_) {
      const PrefixMatches& m = cycle.prefix(*slot_);
      if (m.written) cached = m.cached[*decode] * m.block_size;
    }
    const std::int64_t n = bytes_per_four_ ? request.prompt_bytes / 4 : request.prompt_tokens;
    return disaggregate_by_prefix(parameters_, n, cached, decode.has_value(), zero_means_always_);
  }

 private:
  PrefixDeciderParameters parameters_;
  std::optional<std::size_t> slot_;
  bool zero_means_always_, bytes_per_four_;
};

/// The threshold of pd-profile-handler up to v0.5.0, all in bytes: prefill runs unless
/// (1 - hit) * n < threshold, where one matched block is discounted.
inline bool prefill_above_threshold(double threshold, std::int64_t hash_block_size,
                                    std::int64_t prompt_bytes,
                                    std::optional<std::int64_t> matched_blocks) {
  if (threshold <= 0) return true;
  const auto n = static_cast<double>(prompt_bytes);
  double hit = 0;
  if (matched_blocks && n > 0) {
    const std::int64_t counted = std::max<std::int64_t>(*matched_blocks - 1, 0);
    hit = static_cast<double>(counted * hash_block_size) / n;
  }
  return !((1.0 - hit) * n < threshold);
}

/// pd-profile-handler.
class PdProfileHandler final : public ProfileHandler {
 public:
  PdProfileHandler(const PdProfileParameters& p, const PluginSpec& spec, BuildContext& context)
      : parameters_(p),
        threshold_era_(context.traits().pd_threshold),
        names_prefill_(context.distribution() == Distribution::kHeimdall) {
    for (const auto& [key, profile] : {std::pair("decodeProfile", p.decode_profile),
                                       std::pair("prefillProfile", p.prefill_profile)})
      if (!context.config().profile(profile))
        context.error(spec, key, "references undefined profile '" + profile + "'");
    if (threshold_era_) {
      if (p.decider)
        context.error(spec, "deciderPluginName",
                      "does not exist in era " + std::string(policies::name(context.era())));
      if (p.threshold <= 0) return;
      context.needs().prompt_bytes = true;
      const std::string type =
          p.prefix_plugin_type.empty() ? "prefix-cache-scorer" : p.prefix_plugin_type;
      const std::string plugin = p.prefix_plugin_name.empty() ? type : p.prefix_plugin_name;
      const PluginSpec* prefix = context.config().find(plugin);
      if (prefix != nullptr && prefix->type == type) threshold_slot_ = context.prefix_slot(plugin);
      return;
    }
    const std::string fallback = context.traits().default_decider_is_always
                                     ? "always-disagg-pd-decider"
                                     : "prefix-based-pd-decider";
    decider_ = context.decider(p.decider.value_or(fallback), spec, "deciderPluginName");
  }
  void next(Cycle& cycle, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override {
    const std::int32_t decode = profile_index(profiles, parameters_.decode_profile);
    const std::int32_t prefill = profile_index(profiles, parameters_.prefill_profile);
    if (decode < 0) return;
    if (!has_run(results, decode)) return run.push_back(static_cast<std::uint32_t>(decode));
    const ProfileResult& result = results[static_cast<std::size_t>(decode)];
    if (!result.has_target() || count_run(results) == profiles.size()) return;
    if (prefill >= 0 && !has_run(results, prefill) && wants_prefill(cycle, result))
      run.push_back(static_cast<std::uint32_t>(prefill));
  }
  const char* process(Cycle& cycle, ProfileNames profiles, Decision& decision) const override {
    const std::int32_t index = profile_index(profiles, parameters_.decode_profile);
    const ProfileResult* decode = result_at(decision, index);
    if (decode == nullptr || !decode->has_target())
      return "failed to find available decode workers";
    decision.primary_profile = index;
    if (names_prefill_)
      name_prefill(cycle, decision,
                   result_at(decision, profile_index(profiles, parameters_.prefill_profile)));
    if (parameters_.primary_port != 0)
      use_primary_port(cycle, decision, decode->targets.front(),
                       static_cast<std::int32_t>(parameters_.primary_port));
    return nullptr;
  }

 private:
  bool wants_prefill(Cycle& cycle, const ProfileResult& decode) const {
    const EndpointRow target = decode.targets.front();
    if (!threshold_era_) return decider_ != nullptr && decider_->disaggregate(cycle, target);
    std::optional<std::int64_t> matched;
    if (threshold_slot_) {
      const PrefixMatches& m = cycle.prefix(*threshold_slot_);
      if (m.written) matched = m.match[target];
    }
    return prefill_above_threshold(parameters_.threshold, parameters_.hash_block_size,
                                   cycle.request().prompt_bytes, matched);
  }

  PdProfileParameters parameters_;
  bool threshold_era_;
  bool names_prefill_;  ///< Heimdall's; llm-d's leaves it to a DisaggHeadersHandler.
  std::optional<std::size_t> threshold_slot_;
  const Decider* decider_ = nullptr;
};

enum class StageOrder { kDecodeFirst, kPrefillFirst };
/// Dashes, underscores and case are ignored; "decode" and "prefill" are enough, "" is the default.
inline std::optional<StageOrder> parse_stage_order(std::string_view text) {
  std::string t;
  for (const char c : text) {
    if (c == '-' || c == '_') continue;
    t.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  if (t.empty() || t == "decodefirst" || t == "decode") return StageOrder::kDecodeFirst;
  if (t == "prefillfirst" || t == "prefill") return StageOrder::kPrefillFirst;
  return std::nullopt;
}

/// disagg-profile-handler: encode, prefill and decode stages.
class DisaggProfileHandler final : public ProfileHandler {
 public:
  DisaggProfileHandler(const DisaggProfileParameters& p, const PluginSpec& spec,
                       BuildContext& context)
      : names_endpoints_(context.traits().disagg_handler_sets_headers) {
    if (const auto order = parse_stage_order(p.stage_order))
      order_ = *order;
    else
      context.error(spec, "stageOrder",
                    "must be decode-first or prefill-first (got '" + p.stage_order + "')");
    const bool flat = p.decode_profile || p.prefill_profile || p.encode_profile ||
                      p.prefill_decider || p.decider || p.encode_decider;
    if (flat && (p.profiles || p.deciders))
      context.error(spec, "", "mixes the older flat field names with 'profiles' or 'deciders'");
    const DisaggProfiles names =
        p.profiles.value_or(DisaggProfiles{p.decode_profile, p.prefill_profile, p.encode_profile});
    decode_ = names.decode.value_or("decode");
    prefill_ = names.prefill.value_or("prefill");
    encode_ = names.encode.value_or("encode");
    const DisaggDeciders deciders = p.deciders.value_or(
        DisaggDeciders{p.prefill_decider ? p.prefill_decider : p.decider, p.encode_decider});
    if (order_ == StageOrder::kPrefillFirst && deciders.prefill)
      context.error(spec, "deciders.prefill", "cannot be used with stageOrder prefill-first");
    const auto resolve = [&](const std::optional<std::string>& wanted, const char* key) {
      return wanted ? context.decider(*wanted, spec, key) : nullptr;
    };
    prefill_decider_ = resolve(deciders.prefill, "deciders.prefill");
    encode_decider_ = resolve(deciders.encode, "deciders.encode");
  }
  // Deciders are pure, so a stage that was declined is declined again: no state is needed to mark
  // it as evaluated, which upstream does.
  void next(Cycle& cycle, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override {
    const Stages s = stages(profiles);
    const auto start = [&run](std::int32_t i) { run.push_back(static_cast<std::uint32_t>(i)); };
    const auto target = [&results](std::int32_t i) -> std::optional<EndpointRow> {
      if (i < 0 || !results[static_cast<std::size_t>(i)].has_target()) return std::nullopt;
      return results[static_cast<std::size_t>(i)].targets.front();
    };
    const auto due = [&](std::int32_t stage, const Decider* decider,
                         std::optional<EndpointRow> picked) {
      return stage >= 0 && !has_run(results, stage) && decider != nullptr &&
             decider->disaggregate(cycle, picked);
    };
    if (order_ == StageOrder::kPrefillFirst) {
      if (s.prefill >= 0 && !has_run(results, s.prefill)) return start(s.prefill);
      const std::optional<EndpointRow> prefill = target(s.prefill);
      if (prefill) cycle.set_peer(*prefill);
      if (has_run(results, s.decode)) return;
      if (due(s.encode, encode_decider_, prefill)) return start(s.encode);
      if (s.decode >= 0) start(s.decode);
      return;
    }
    if (s.decode < 0) return;
    if (!has_run(results, s.decode)) return start(s.decode);
    const std::optional<EndpointRow> decode = target(s.decode);
    if (!decode) return;
    cycle.set_peer(*decode);
    if (!has_run(results, s.prefill) && due(s.encode, encode_decider_, decode))
      return start(s.encode);
    if (due(s.prefill, prefill_decider_, decode)) start(s.prefill);
  }
  const char* process(Cycle& cycle, ProfileNames profiles, Decision& decision) const override {
    const Stages s = stages(profiles);
    const ProfileResult* decode = result_at(decision, s.decode);
    if (decode == nullptr || !decode->has_target())
      return "failed to find available decode workers";
    decision.primary_profile = s.decode;
    if (!names_endpoints_) return nullptr;
    name_prefill(cycle, decision, result_at(decision, s.prefill));
    name_encoders(cycle, decision, result_at(decision, s.encode));
    return nullptr;
  }

 private:
  struct Stages {
    std::int32_t decode, prefill, encode;
  };
  Stages stages(ProfileNames profiles) const {
    return {.decode = profile_index(profiles, decode_),
            .prefill = profile_index(profiles, prefill_),
            .encode = profile_index(profiles, encode_)};
  }

  bool names_endpoints_;  ///< In the headers, without a DisaggHeadersHandler.
  StageOrder order_ = StageOrder::kDecodeFirst;
  std::string decode_ = "decode", prefill_ = "prefill", encode_ = "encode";
  const Decider* prefill_decider_ = nullptr;
  const Decider* encode_decider_ = nullptr;
};

/// prefill-header-handler, and disagg-headers-handler from v0.7.0 on: names the picked prefill and
/// encode endpoints in request headers, for the side-car of the decode endpoint.
class DisaggHeadersHandler final : public Plugin {
 public:
  DisaggHeadersHandler(const DisaggHeadersParameters& p, const PluginSpec&, BuildContext& context)
      : prefill_(context.config().profile(p.prefill_profile)),
        encode_(context.config().profile(p.encode_profile)) {}
  void on_decided(Cycle& cycle, Decision& decision) const override {
    name_prefill(cycle, decision, prefill_ ? &decision.profiles[*prefill_] : nullptr);
    name_encoders(cycle, decision, encode_ ? &decision.profiles[*encode_] : nullptr);
  }

 private:
  std::optional<std::size_t> prefill_, encode_;
};

}  // namespace routesim::policies
