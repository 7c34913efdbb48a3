#include "policies/era.h"

namespace routesim::policies {
namespace {

// One row per era, in the order of the enumerators. Each row is written as changes to the one
// before, because that is how upstream's history reads.
constexpr std::array<EraTraits, 7> make_traits() {
  EraTraits t{};
  t.index_by_engine_hash = true;
  t.precise_normalization = PreciseNormalization::kMinMax;
  t.pod_key_is_address = true;
  t.token_processor_in_indexer = true;
  t.pd_threshold = true;
  t.active_requests = ActiveRequestCounts::kOwn;
  t.approx_hashing = ApproxHashing::kBytes;
  t.legacy_role_sets = true;
  t.integer_weights = true;
  const EraTraits v032 = t;

  t.tier_weights = true;
  const EraTraits v040 = t;

  t.index_by_engine_hash = false;
  t.token_processor_in_indexer = false;
  const EraTraits v050 = t;

  t.pd_threshold = false;
  t.decider_zero_disaggregates = true;
  t.default_decider_is_always = true;
  t.integer_weights = false;
  const EraTraits v060 = t;

  t.decider_zero_disaggregates = false;
  t.default_decider_is_always = false;
  t.pod_key_is_address = false;
  t.lookup_candidates_only = true;
  t.speculative_indexing = true;
  t.active_requests = ActiveRequestCounts::kOwnWithThreshold;
  t.max_busy_score_zero_bug = true;
  t.legacy_role_sets = false;
  const EraTraits v070 = t;

  t.precise_normalization = PreciseNormalization::kAbsolute;
  t.active_requests = ActiveRequestCounts::kInFlightProducer;
  t.approx_hashing = ApproxHashing::kBytesTail;
  t.match_info_producers = true;
  const EraTraits may = t;

  t.precise_normalization = PreciseNormalization::kTruncated;
  t.clears_on_all_blocks_cleared = true;
  t.counts_duplicate_stores = true;
  t.max_busy_score_zero_bug = false;
  t.approx_hashing = ApproxHashing::kTokens;
  t.strict_parameters = true;
  t.filtered_out_is_429 = true;
  const EraTraits aug = t;

  return {v032, v040, v050, v060, v070, may, aug};
}

constexpr std::array<EraTraits, 7> kTraits = make_traits();

}  // namespace

const EraTraits& traits(Era era) { return kTraits[static_cast<std::size_t>(era)]; }

bool indexes_by_address(Era era, Distribution distribution) {
  return traits(era).pod_key_is_address && distribution != Distribution::kHeimdall;
}

std::string_view name(Era era) { return kEraNames[static_cast<std::size_t>(era)]; }

std::string_view name(Distribution distribution) {
  return kDistributionNames[static_cast<std::size_t>(distribution)];
}

std::optional<Era> parse_era(std::string_view text) {
  if (text == "v0.8.0") return Era::kV0_7_0;
  for (std::size_t i = 0; i < kEraNames.size(); ++i)
    if (kEraNames[i] == text) return static_cast<Era>(i);
  return std::nullopt;
}

}  // namespace routesim::policies
