// The releases of the llm-d router differ in what they decide. An era names one column of those
// differences; EraTraits says what the column means, so that plugins ask for a behaviour and never
// compare versions.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace routesim::policies {

/// A span of upstream releases that decide alike, oldest first.
enum class Era {
  kV0_3_2,   ///< llm-d-inference-scheduler 0.3.2 (October 2025); Heimdall generation 1, early.
  kV0_4_0,   ///< 0.4.0 (December 2025).
  kV0_5_0,   ///< 0.5.0 (February 2026); Heimdall generation 1, late.
  kV0_6_0,   ///< 0.6.0 (March 2026).
  kV0_7_0,   ///< 0.7.0 and 0.8.0 (March and April 2026).
  kMay2026,  ///< Head of llm-d-inference-scheduler, May 2026.
  // The eras below decide like August but for pulls, tiers and how long requests may wait.
  kV0_9_0,       ///< llm-d-router 0.9.0 (23 June 2026).
  kJul2026,      ///< llm-d-router from 9 July 2026 (pull request 1924).
  kLateJul2026,  ///< From 26 July 2026 (2032).
  kAug2026,      ///< Head of llm-d-router, August 2026; pulls as of 7 August (2321).
  kSep2026,      ///< From 11 September 2026 (2559, 2809).
  kLate2026,     ///< The newest tier weights seen, autumn 2026.
};
inline constexpr std::size_t kEraCount = 12;
inline constexpr std::array<std::string_view, kEraCount> kEraNames = {
    "v0.3.2", "v0.4.0",  "v0.5.0",     "v0.6.0",  "v0.7.0",  "2026-05",
    "v0.9.0", "2026-07", "2026-07-26", "2026-08", "2026-09", "2026-autumn"};

/// The vendor whose build runs the document: the label keys differ, the mechanisms do not.
enum class Distribution {
  kLlmD,      ///< llm-d router.
  kHeimdall,  ///< Moreh's Heimdall, generation 1.
};
inline constexpr std::array<std::string_view, 2> kDistributionNames = {"llm-d", "heimdall"};

/// How the precise prefix score is made from the weighted count of matched blocks.
enum class PreciseNormalization {
  kMinMax,     ///< Min-max over every pod in the raw score map; the weakest match scores 0.
  kAbsolute,   ///< min(1, raw / total).
  kTruncated,  ///< trunc(raw) / total.
};

enum class ApproxHashing {
  kBytes,      ///< Chunks of prompt bytes; the tail is dropped.
  kBytesTail,  ///< Chunks of prompt bytes; the tail is hashed too.
  kTokens,     ///< Blocks of at least 64 tokens; the tail is hashed too.
};

/// The source of the counts of active-request-scorer.
enum class ActiveRequestCounts {
  /// Its own counters with a time-out; maximum over every tracked endpoint. A streamed answer stops
  /// counting when its headers come (llm-d-router issue 317), until pull request 378 in v0.4.0.
  kOwnUntilHeaders,
  /// An answer counts until it is complete. Only the primary target is released; a prefill endpoint
  /// counts until the time-out. So does the era before; pull request 569 in v0.5.0 releases both.
  kOwnPrimary,
  kOwn,               ///< Every target counts until the answer is complete.
  kOwnWithThreshold,  ///< The same, with idleThreshold and maxBusyScore.
  kInFlightProducer,  ///< inflight-load-producer; maximum over the candidates.
};

/// How KV events reach the precise index.
enum class KvEventFeed {
  kSocket,         ///< Engines connect to zmqEndpoint, which has a default.
  kDialsScored,    ///< Or, unless discoverPods is off, the scorer dials what it scores.
  kDialsNotified,  ///< Or what an endpoint-notification-source in dataLayer tells it of.
};

/// Default weight of the blocks of a storage tier in the precise index.
struct NamedTierWeight {
  std::string_view tier;
  double weight;
};
/// The weights as releases added them: two in kv-cache 0.4.0 (pkg/kvcache/backend.go), two more in
/// llm-d-router pull request 2809, then that of vLLM's fs and obj tiers.
inline constexpr std::array<NamedTierWeight, 5> kDefaultTierWeights = {
    {{"gpu", 1.0}, {"cpu", 0.8}, {"shared_storage", 0.4}, {"object_store", 0.2}, {"storage", 0.3}}};

/// How p2p-source-producer chooses the server to pull KV blocks from (llm-d-router
/// dataproducer/p2psource).
enum class PullSourceRule {
  kMost,      ///< The first endpoint with most cached blocks in any tier.
  kBand,      ///< A draw among those within one block of the most, by free queue.
  kCpuBand,   ///< The same by blocks in the CPU tier, which is what a pull reads.
  kConfirmed  ///< And what the computing side holds leaves out speculative entries.
};

struct PreciseTraits {
  bool index_by_engine_hash;    ///< Index keyed by the engine's SHA-256 hashes, not request keys.
  std::size_t tier_weights;     ///< Defaults of kDefaultTierWeights; 0 = there are no tiers.
  double unlisted_tier_weight;  ///< Weight of a tier that has none.
  bool lower_case_tier_names;   ///< Configured names are lower-cased, as those of events are.
  PreciseNormalization normalization;
  bool pod_key_is_address;      ///< All ranks of one pod address share their index entries.
  bool lookup_candidates_only;  ///< Min-max sees only candidates, not every indexed pod.
  bool speculative_indexing;    ///< The parameter exists.
  bool clears_on_all_blocks_cleared;
  bool forgets_removed;   ///< An endpoint's blocks go when it is not ready (pull request 1738).
  bool asks_for_replays;  ///< Subscriptions read replaySocketPort (pull request 1887).
  bool counts_duplicate_stores;     ///< BlockRemoved is suppressed until the last copy is gone.
  bool token_processor_in_indexer;  ///< tokenProcessorConfig belongs inside indexerConfig.
  KvEventFeed kv_event_feed;
};

struct EraTraits {
  PreciseTraits precise;
  bool pd_threshold;                 ///< pd-profile-handler has a byte threshold, no decider.
  bool disagg_handler_sets_headers;  ///< disagg-profile-handler needs no plugin for them.
  bool decider_zero_disaggregates;   ///< prefix-based-pd-decider with nonCachedTokens 0 says yes.
  bool default_decider_is_always;    ///< pd-profile-handler's default decider.
  ActiveRequestCounts active_requests;
  bool max_busy_score_zero_bug;  ///< A parameter object without maxBusyScore makes it 0.
  ApproxHashing approx_hashing;
  bool legacy_role_sets;  ///< decode-filter {decode, both, absent}; prefill {prefill}.
  bool integer_weights;
  bool strict_parameters;  ///< Unknown parameter fields are errors, not ignored.
  /// The utilization detector is either closed or open: closed when no endpoint has room.
  bool saturated_without_room;
  bool filtered_out_is_429;        ///< "no endpoints available" answers 429 instead of 500.
  bool match_info_producers;       ///< Prefix state comes from named producers (2026-05 on).
  bool token_load_needs_producer;  ///< token-load-scorer needs a declared inflight-load-producer.
  bool default_document;           ///< An empty document stands for the loader's own.
  /// Pickers that stand by know servers and KV events, and one asked to end drains (1884, 1885).
  bool ha_standby;
  PullSourceRule pull_source;
  bool bounds_waiting;  ///< A band takes 5,000 requests and they wait 60 s, unless told otherwise.
};

const EraTraits& traits(Era era);
/// Whether all ranks behind one address share their entries in the precise index. Heimdall, whose
/// schema is that of an early era, nevertheless tells ranks apart: its published gain from routing
/// between the eight ranks of one decode node would be impossible otherwise.
bool indexes_by_address(Era era, Distribution distribution);
std::string_view name(Era era);
std::string_view name(Distribution distribution);
/// Accepts the names above, and any release v0.3 to v0.10 with its patches and candidates, such as
/// "v0.8.1" or "v0.10.0-rc.1", for the column that decides like it.
std::optional<Era> parse_era(std::string_view text);
/// The names that parse_era accepts, for messages.
std::string known_eras();
/// "v0.9.0 decides like 2026-08" where the text is not the era's own name, otherwise "".
std::string era_note(std::string_view text);

}  // namespace routesim::policies
