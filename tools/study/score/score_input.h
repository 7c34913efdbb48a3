// What `routesim score` reads beside the configuration: the endpoints as a router sees them, and
// one request. tools/study/score/README.md documents both files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/describe.h"
#include "base/diagnostic.h"
#include "base/units.h"
#include "policies/views.h"

namespace routesim::tools {

/// Names of the two formats in the ledger of keys.
inline constexpr std::string_view kScoreEndpointsFormat = "score endpoints";
inline constexpr std::string_view kScoreRequestFormat = "score request";

/// Describes the keys of an endpoint of E, and those of R, with the fate of each.
void describe_score_endpoint(Describer& d);
void describe_score_request(Describer& d);

/// The pool of one decision.
struct ScorePool {
  policies::EndpointTable table;
  std::vector<std::string> names;  ///< By row; unique.

  /// The row of a name, `namespace/name` or `address:port`.
  std::optional<policies::EndpointRow> find(const std::string& text) const;
};

/// Reads E, a list of endpoints. Metrics are dated `now` minus their age. Everything wrong goes to
/// `diagnostics`; nothing is returned then.
std::optional<ScorePool> read_score_pool(const std::string& path, SimTime now,
                                         Diagnostics& diagnostics);

/// One item of a multimodal prompt.
struct ScoreItem {
  std::string hash;
  double size = 0;  ///< Relative cost of encoding it.
};
void describe(Describer& d, ScoreItem& i);

/// R as written. The prompt is one of text, token ids, ready block keys, or only a length.
struct ScoreRequest {
  SourceLocation where;
  std::int64_t id = 1;
  std::string model;
  std::optional<std::string> text;
  std::optional<std::vector<std::uint32_t>> token_ids;
  std::optional<std::vector<std::uint64_t>> block_keys;
  std::optional<std::vector<std::uint64_t>> approx_hashes;
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::int64_t> prompt_bytes;
  std::map<std::string, std::string> headers;
  std::vector<policies::EndpointRow> subset;
  std::int32_t priority = 0;
  std::optional<std::int64_t> max_tokens;
  std::string session;
  std::string cache_salt;
  double slo_ttft_ms = 0;
  double slo_tpot_ms = 0;
  std::vector<policies::LatencyPrediction> predictions;  ///< By row; empty when none was given.
  std::vector<ScoreItem> items;
  std::vector<double> cached_item_size;  ///< By row; empty when none was given.
};

/// Reads R. `pool` resolves the endpoints it names; without one (E was unreadable) they are not
/// checked.
std::optional<ScoreRequest> read_score_request(const std::string& path, const ScorePool* pool,
                                               Diagnostics& diagnostics);

/// A 64-bit key or hash as JSON has it: a whole number, or text "0x..." or decimal. Reports what is
/// wrong at the node.
std::optional<std::uint64_t> parse_key(const ConfigNode& node, const std::string& path,
                                       Diagnostics& diagnostics);
/// The same for a list of them.
std::optional<std::vector<std::uint64_t>> parse_keys(const ConfigNode& node,
                                                     const std::string& path,
                                                     Diagnostics& diagnostics);

}  // namespace routesim::tools
