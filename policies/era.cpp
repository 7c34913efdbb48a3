#include "policies/era.h"

#include <charconv>

namespace routesim::policies {
namespace {

// The eras behind July 2026, the last of `early`, change how tiers and pulls are decided.
constexpr std::array<EraTraits, kEraCount> add_late_eras(const std::array<EraTraits, 8>& early) {
  std::array<EraTraits, kEraCount> all{};
  for (std::size_t i = 0; i < early.size(); ++i) all[i] = early[i];
  EraTraits t = early.back();

  t.pull_source = PullSourceRule::kBand;
  t.bounds_waiting = true;  // Pull request 2123, 23 July.
  all[static_cast<std::size_t>(Era::kLateJul2026)] = t;

  t.pull_source = PullSourceRule::kCpuBand;
  all[static_cast<std::size_t>(Era::kAug2026)] = t;

  t.pull_source = PullSourceRule::kConfirmed;
  t.precise.tier_weights = 4;
  t.precise.unlisted_tier_weight = 0.0;
  t.precise.lower_case_tier_names = true;
  all[static_cast<std::size_t>(Era::kSep2026)] = t;

  t.precise.tier_weights = 5;
  all[static_cast<std::size_t>(Era::kLate2026)] = t;
  return all;
}

// One row per era, in the order of the enumerators. Each row is written as changes to the one
// before, because that is how upstream's history reads.
constexpr std::array<EraTraits, kEraCount> make_traits() {
  EraTraits t{};
  t.precise.index_by_engine_hash = true;
  t.precise.normalization = PreciseNormalization::kMinMax;
  t.precise.pod_key_is_address = true;
  t.precise.token_processor_in_indexer = true;
  t.precise.unlisted_tier_weight = 1.0;
  t.pd_threshold = true;
  t.active_requests = ActiveRequestCounts::kOwn;
  t.approx_hashing = ApproxHashing::kBytes;
  t.legacy_role_sets = true;
  t.integer_weights = true;
  t.saturated_without_room = true;
  const EraTraits v032 = t;

  t.precise.tier_weights = 2;
  const EraTraits v040 = t;

  t.precise.index_by_engine_hash = false;
  t.precise.token_processor_in_indexer = false;
  t.precise.kv_event_feed = KvEventFeed::kDialsScored;
  const EraTraits v050 = t;

  t.pd_threshold = false;
  t.decider_zero_disaggregates = true;
  t.default_decider_is_always = true;
  t.integer_weights = false;
  t.saturated_without_room = false;  // gateway-api-inference-extension pull request 2224.
  const EraTraits v060 = t;

  t.decider_zero_disaggregates = false;
  t.default_decider_is_always = false;
  t.precise.pod_key_is_address = false;
  t.precise.lookup_candidates_only = true;
  t.precise.speculative_indexing = true;
  t.active_requests = ActiveRequestCounts::kOwnWithThreshold;
  t.max_busy_score_zero_bug = true;
  t.legacy_role_sets = false;
  t.default_document = true;  // gateway-api-inference-extension 1.4.0.
  const EraTraits v070 = t;

  t.precise.normalization = PreciseNormalization::kAbsolute;
  t.active_requests = ActiveRequestCounts::kInFlightProducer;
  t.approx_hashing = ApproxHashing::kBytesTail;
  t.match_info_producers = true;
  t.disagg_handler_sets_headers = true;
  const EraTraits may = t;

  t.precise.normalization = PreciseNormalization::kTruncated;
  t.precise.clears_on_all_blocks_cleared = true;
  t.precise.counts_duplicate_stores = true;
  t.max_busy_score_zero_bug = false;
  t.approx_hashing = ApproxHashing::kTokens;
  t.strict_parameters = true;
  t.precise.kv_event_feed = KvEventFeed::kDialsNotified;
  t.token_load_needs_producer = true;
  t.filtered_out_is_429 = true;
  return add_late_eras({v032, v040, v050, v060, v070, may, t, t});
}

constexpr std::array<EraTraits, kEraCount> kTraits = make_traits();

/// The releases 0.MINOR.x and the era that stands for each.
struct Release {
  int minor;
  Era era;
};
// 0.9.0 has the token blocks and producers of the newest era (llm-d-router pull request 1445);
// 0.10.0 is of August.
constexpr std::array<Release, 8> kReleases = {{{3, Era::kV0_3_2},
                                               {4, Era::kV0_4_0},
                                               {5, Era::kV0_5_0},
                                               {6, Era::kV0_6_0},
                                               {7, Era::kV0_7_0},
                                               {8, Era::kV0_7_0},
                                               {9, Era::kV0_9_0},
                                               {10, Era::kAug2026}}};

/// Takes the digits `text` begins with.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// MINOR of "v0.MINOR.PATCH", which may be a candidate: "-rc.1", "-rc1".
std::optional<int> minor_of(std::string_view text) {
  if (!take(text, "v0.")) return std::nullopt;
  const std::optional<int> minor = take_number(text);
  if (!minor || !take(text, ".") || !take_number(text)) return std::nullopt;
  if (text.empty()) return minor;
  if (!take(text, "-rc")) return std::nullopt;
  take(text, ".");
  return take_number(text) && text.empty() ? minor : std::nullopt;
}

}  // namespace

const EraTraits& traits(Era era) { return kTraits[static_cast<std::size_t>(era)]; }

bool indexes_by_address(Era era, Distribution distribution) {
  return traits(era).precise.pod_key_is_address && distribution != Distribution::kHeimdall;
}

std::string_view name(Era era) { return kEraNames[static_cast<std::size_t>(era)]; }

std::string_view name(Distribution distribution) {
  return kDistributionNames[static_cast<std::size_t>(distribution)];
}

std::optional<Era> parse_era(std::string_view text) {
  for (std::size_t i = 0; i < kEraNames.size(); ++i)
    if (kEraNames[i] == text) return static_cast<Era>(i);
  const std::optional<int> minor = minor_of(text);
  if (!minor) return std::nullopt;
  for (const Release& release : kReleases)
    if (release.minor == *minor) return release.era;
  return std::nullopt;
}

std::string known_eras() {
  std::string text;
  for (const Release& release : kReleases)
    text += (text.empty() ? "v0." : ", v0.") + std::to_string(release.minor) +
            (release.minor == 3 ? ".2" : ".0");
  text += ", their patch releases";
  for (auto era = static_cast<std::size_t>(Era::kMay2026); era < kEraCount; ++era)
    if (kEraNames[era].front() != 'v')
      text += (era + 1 < kEraCount ? ", " : " and ") + std::string(kEraNames[era]);
  return text;
}

std::string era_note(std::string_view text) {
  const std::optional<Era> era = parse_era(text);
  if (!era || name(*era) == text) return {};
  return std::string(text) + " decides like " + std::string(name(*era));
}

}  // namespace routesim::policies
