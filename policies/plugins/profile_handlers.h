// Profile handlers and deciders: which profiles run, and what a decision is made of.
// llm-d-router pkg/epp/framework/plugins/scheduling/profilehandler.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/config/factory.h"

namespace routesim::policies {

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
