// `routesim score`: the endpoints as a router sees them, one request and KV events are read; the
// production code decides; the decision's record is JSON. README.md documents the files.
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
#include "policies/kv_events/kv_event_ingest.h"
#include "policies/kv_events/kv_events.h"
#include "policies/scheduler.h"
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

/// Name of the format in the ledger of keys.
inline constexpr std::string_view kScoreEventsFormat = "score events";

/// Describes the keys of a line of F, and those of an event that is spelled out in one, with the
/// fate of each.
void describe_score_line(Describer& d);
void describe_score_event(Describer& d);

/// One line: what one endpoint published in one message.
struct KvMessage {
  policies::EndpointRow endpoint = 0;
  std::string model;  ///< Model of the topic; empty = the endpoint's.
  policies::KvEventBatch batch;
};

/// Reads F. `pool` resolves the endpoints; without one (E was unreadable) they are not checked.
std::optional<std::vector<KvMessage>> read_kv_messages(const std::string& path,
                                                       const ScorePool* pool,
                                                       Diagnostics& diagnostics);

/// Feeds the scheduler's precise index the way a router's subscriber does, keys recomputed from the
/// tokens. The model of a message is its topic's, else the endpoint's, else `model`. Requires
/// scheduler.precise_index().
policies::KvIngestStats ingest(const std::vector<KvMessage>& messages, const ScorePool& pool,
                               const std::string& model, policies::Scheduler& scheduler);

/// The request in the form the router wants it, with the buffers its views point into.
class KeyedRequest {
 public:
  /// Computes what `scheduler` reads. Warns about what it reads and the request does not hold.
  KeyedRequest(const ScoreRequest& request, const ScorePool& pool,
               const policies::Scheduler& scheduler, Diagnostics& diagnostics);
  KeyedRequest(const KeyedRequest&) = delete;
  KeyedRequest& operator=(const KeyedRequest&) = delete;

  const policies::RequestView& view() const { return view_; }

 private:
  void add_block_keys(const policies::Scheduler& scheduler, Diagnostics& diagnostics);
  void add_approx_hashes(const policies::ApproxScheme& scheme, Diagnostics& diagnostics);

  const ScoreRequest& request_;
  std::vector<std::uint32_t> tokens_;
  std::vector<std::uint64_t> block_keys_, approx_hashes_;
  std::vector<policies::Header> headers_;
  std::vector<policies::EncoderItem> items_;
  policies::RequestView view_;
};

/// The inputs of the record that `score` prints.
struct ScoreReport {
  const policies::Scheduler& scheduler;
  const ScorePool& pool;
  const policies::RequestView& request;
  const policies::Decision& decision;
  const policies::Explanation& explanation;
  std::optional<policies::KvIngestStats> kv_events;  ///< Absent when none were given.
  std::uint64_t seed = 0;
  SimTime now;
};
std::string render_score(const ScoreReport& report);

}  // namespace routesim::tools
