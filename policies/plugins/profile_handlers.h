// Profile handlers and deciders: which profiles run, and what a decision is made of.
// llm-d-router pkg/epp/framework/plugins/scheduling/profilehandler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
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
std::int32_t profile_index(ProfileNames profiles, std::string_view name);

/// single-profile-handler.
class SingleProfileHandler final : public ProfileHandler {
 public:
  SingleProfileHandler(const NoParameters&, const PluginSpec&, BuildContext&) {}
  void next(Cycle&, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override;
  const char* process(Cycle&, ProfileNames profiles, Decision& decision) const override;
};

/// data-parallel-profile-handler: one profile; the side-car on primaryPort forwards to the rank.
class DataParallelProfileHandler final : public ProfileHandler {
 public:
  DataParallelProfileHandler(const DataParallelParameters& p, const PluginSpec&, BuildContext&)
      : primary_port_(static_cast<std::int32_t>(p.primary_port)) {}
  std::int32_t primary_port() const { return primary_port_; }
  void next(Cycle&, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override;
  const char* process(Cycle& cycle, ProfileNames profiles, Decision& decision) const override;

 private:
  std::int32_t primary_port_;
};

/// header-profile-handler: runs the profile a request header names.
class HeaderProfileHandler final : public ProfileHandler {
 public:
  HeaderProfileHandler(const HeaderProfileParameters& p, const PluginSpec& spec,
                       BuildContext& context);
  void next(Cycle& cycle, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override;
  const char* process(Cycle& cycle, ProfileNames profiles, Decision& decision) const override;

 private:
  std::string header_, default_profile_;
};

/// always-disagg-pd-decider.
class AlwaysDecider final : public Decider {
 public:
  AlwaysDecider(const NoParameters&, const PluginSpec&, BuildContext&) {}
  bool disaggregate(const Cycle&, std::optional<EndpointRow>) const override { return true; }
};

/// always-disagg-multimodal-decider.
class MultimodalDecider final : public Decider {
 public:
  MultimodalDecider(const NoParameters&, const PluginSpec&, BuildContext&) {}
  bool disaggregate(const Cycle& cycle, std::optional<EndpointRow>) const override {
    return cycle.request().multimodal;
  }
};

/// The rule of prefix-based-pd-decider on numbers. `cached_tokens` is what the decode endpoint
/// holds, nothing when unknown. `zero_means_always`: nonCachedTokens 0 in v0.6.0.
bool disaggregate_by_prefix(const PrefixDeciderParameters& p, std::int64_t prompt_tokens,
                            std::optional<std::int64_t> cached_tokens, bool endpoint_known,
                            bool zero_means_always);

/// prefix-based-pd-decider.
class PrefixDecider final : public Decider {
 public:
  PrefixDecider(const PrefixDeciderParameters& p, const PluginSpec& spec, BuildContext& context);
  bool disaggregate(const Cycle& cycle, std::optional<EndpointRow> decode) const override;

 private:
  PrefixDeciderParameters parameters_;
  std::optional<std::size_t> slot_;
  bool zero_means_always_, bytes_per_four_;
};

/// The threshold of pd-profile-handler up to v0.5.0, all in bytes: prefill runs unless
/// (1 - hit) * n < threshold, where one matched block is discounted.
bool prefill_above_threshold(double threshold, std::int64_t hash_block_size,
                             std::int64_t prompt_bytes, std::optional<std::int64_t> matched_blocks);

/// pd-profile-handler.
class PdProfileHandler final : public ProfileHandler {
 public:
  PdProfileHandler(const PdProfileParameters& p, const PluginSpec& spec, BuildContext& context);
  void next(Cycle& cycle, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override;
  const char* process(Cycle& cycle, ProfileNames profiles, Decision& decision) const override;

 private:
  bool wants_prefill(Cycle& cycle, const ProfileResult& decode) const;

  PdProfileParameters parameters_;
  bool threshold_era_;
  bool names_prefill_;  ///< Heimdall's; llm-d's leaves it to a DisaggHeadersHandler.
  std::optional<std::size_t> threshold_slot_;
  const Decider* decider_ = nullptr;
};

enum class StageOrder { kDecodeFirst, kPrefillFirst };
/// Dashes, underscores and case are ignored; "decode" and "prefill" are enough, "" is the default.
std::optional<StageOrder> parse_stage_order(std::string_view text);

/// disagg-profile-handler: encode, prefill and decode stages.
class DisaggProfileHandler final : public ProfileHandler {
 public:
  DisaggProfileHandler(const DisaggProfileParameters& p, const PluginSpec& spec,
                       BuildContext& context);
  void next(Cycle& cycle, ProfileNames profiles, std::span<const ProfileResult> results,
            std::vector<std::uint32_t>& run) const override;
  const char* process(Cycle& cycle, ProfileNames profiles, Decision& decision) const override;

 private:
  struct Stages {
    std::int32_t decode, prefill, encode;
  };
  Stages stages(ProfileNames profiles) const;

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
  DisaggHeadersHandler(const DisaggHeadersParameters& p, const PluginSpec& spec,
                       BuildContext& context);
  void on_decided(Cycle& cycle, Decision& decision) const override;

 private:
  std::int32_t prefill_ = -1, encode_ = -1;  ///< Indices of the profiles; -1 = there is none.
};

}  // namespace routesim::policies
