#include "policies/era.h"

#include <charconv>

namespace routesim::policies {
namespace {

/// The changes of each era from the one before, in the order of the enumerators.
constexpr std::array<void (*)(EraTraits&), kEraCount> kChanges = {
    [](EraTraits& t) {  // v0.3.2
      t.precise.index_by_engine_hash = true;
      t.precise.normalization = PreciseNormalization::kMinMax;
      t.precise.pod_key_is_address = true;
      t.precise.token_processor_in_indexer = true;
      t.precise.unlisted_tier_weight = 1.0;
      t.pd_threshold = true;
      t.active_requests = ActiveRequestCounts::kOwnUntilHeaders;
      t.approx_hashing = ApproxHashing::kBytes;
      t.legacy_role_sets = true;
      t.integer_weights = true;
      t.saturated_without_room = true;
    },
    [](EraTraits& t) {  // v0.4.0
      t.precise.tier_weights = 2;
      t.active_requests = ActiveRequestCounts::kOwnPrimary;
    },
    [](EraTraits& t) {  // v0.5.0
      t.active_requests = ActiveRequestCounts::kOwn;
      t.precise.index_by_engine_hash = false;
      t.precise.token_processor_in_indexer = false;
      t.precise.kv_event_feed = KvEventFeed::kDialsScored;
    },
    [](EraTraits& t) {  // v0.6.0
      t.pd_threshold = false;
      t.decider_zero_disaggregates = true;
      t.default_decider_is_always = true;
      t.integer_weights = false;
      t.saturated_without_room = false;  // gateway-api-inference-extension pull request 2224.
    },
    [](EraTraits& t) {  // v0.7.0
      t.decider_zero_disaggregates = false;
      t.default_decider_is_always = false;
      t.precise.pod_key_is_address = false;
      t.precise.lookup_candidates_only = true;
      t.precise.speculative_indexing = true;
      t.active_requests = ActiveRequestCounts::kOwnWithThreshold;
      t.max_busy_score_zero_bug = true;
      t.legacy_role_sets = false;
      t.default_document = true;  // gateway-api-inference-extension 1.4.0.
    },
    [](EraTraits& t) {  // May 2026
      t.precise.normalization = PreciseNormalization::kAbsolute;
      t.active_requests = ActiveRequestCounts::kInFlightProducer;
      t.approx_hashing = ApproxHashing::kBytesTail;
      t.match_info_producers = true;
      t.disagg_handler_sets_headers = true;
    },
    [](EraTraits& t) {  // v0.9.0
      t.precise.normalization = PreciseNormalization::kTruncated;
      t.precise.clears_on_all_blocks_cleared = true;
      t.precise.counts_duplicate_stores = true;
      t.max_busy_score_zero_bug = false;
      t.approx_hashing = ApproxHashing::kTokens;
      t.strict_parameters = true;
      t.precise.kv_event_feed = KvEventFeed::kDialsNotified;
      t.token_load_needs_producer = true;
      t.filtered_out_is_429 = true;
    },
    [](EraTraits& t) {  // July 2026; from here on tiers and pulls change.
      t.precise.forgets_removed = true;
      t.ha_standby = true;
    },
    [](EraTraits& t) {
      t.pull_source = PullSourceRule::kBand;
      t.bounds_waiting = true;  // Pull request 2123, 23 July.
    },
    [](EraTraits& t) {  // August 2026
      t.pull_source = PullSourceRule::kCpuBand;
      t.precise.asks_for_replays = true;
    },
    [](EraTraits& t) {  // September 2026
      t.pull_source = PullSourceRule::kConfirmed;
      t.precise.tier_weights = 4;
      t.precise.unlisted_tier_weight = 0.0;
      t.precise.lower_case_tier_names = true;
    },
    [](EraTraits& t) { t.precise.tier_weights = 5; },  // Autumn 2026
};

constexpr std::array<EraTraits, kEraCount> kTraits = [] {
  std::array<EraTraits, kEraCount> all{};
  EraTraits t{};
  for (std::size_t era = 0; era < kEraCount; ++era) {
    kChanges[era](t);
    all[era] = t;
  }
  return all;
}();

// The eras that stand for the releases 0.MINOR.x, from MINOR 3 on. 0.9.0 has the newest era's token
// blocks and producers (pull request 1445); 0.10.0 is of August.
constexpr int kFirstMinor = 3;
constexpr std::array kReleases = {Era::kV0_3_2, Era::kV0_4_0, Era::kV0_5_0, Era::kV0_6_0,
                                  Era::kV0_7_0, Era::kV0_7_0, Era::kV0_9_0, Era::kAug2026};

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
  if (!minor || *minor < kFirstMinor) return std::nullopt;
  const auto at = static_cast<std::size_t>(*minor - kFirstMinor);
  return at < kReleases.size() ? std::optional(kReleases[at]) : std::nullopt;
}

std::string known_eras() {
  std::string text;
  for (std::size_t i = 0; i < kReleases.size(); ++i)
    text += (i == 0 ? "v0." : ", v0.") + std::to_string(kFirstMinor + i) + (i == 0 ? ".2" : ".0");
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
