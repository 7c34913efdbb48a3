// F: KV events, one JSON object per line, either spelled out or as the bytes an engine published.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/kv_events/kv_event_ingest.h"
#include "policies/kv_events/kv_events.h"
#include "policies/scheduler.h"
#include "tools/study/score/score_input.h"

namespace routesim::tools {

/// Name of the format in the ledger of keys.
inline constexpr std::string_view kScoreEventsFormat = "score events";

/// Describes the keys of a line of F, and those of an event that is spelled out in one, with the
/// fate of each.
void describe_score_line(Describer& d);
void describe_score_event(Describer& d);

/// One line: what one endpoint published in one message.
struct KvMessage {
  policies::EndpointRow endpoint = 0;
  std::string model;  ///< Of the topic; empty = the endpoint's.
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

}  // namespace routesim::tools
