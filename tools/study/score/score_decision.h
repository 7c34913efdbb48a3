// One decision of the production code over what was read, and its record as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/scheduler.h"
#include "tools/study/score/score_events.h"
#include "tools/study/score/score_input.h"

namespace routesim::tools {

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

/// What `score` prints.
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
