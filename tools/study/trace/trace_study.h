// The prefixes that the requests of a load share, before anyone simulates a server.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/diagnostic.h"
#include "workloads/load_generator.h"

namespace routesim::tools {

// How far back in an LRU list each block is, without keeping the list.

/// The blocks 0 … n - 1 in the order of their last use. One touch or question costs O(log n); the
/// memory is that of at most twice the blocks that were touched.
class LruStack {
 public:
  /// Makes the block the most recent. Blocks may come in any order.
  void touch(std::uint32_t block);
  /// Blocks that were used no earlier than this one, itself included; 0 if it was never touched. An
  /// LRU cache holds it exactly when it has room for so many.
  std::int64_t depth(std::uint32_t block) const;

 private:
  void add(std::size_t position, std::int32_t change);
  std::int64_t before(std::size_t position) const;
  void compact();

  std::vector<std::size_t> position_;  // By block; 0: never touched.
  std::vector<std::uint32_t> owner_;   // By position; kNobody where the block moved on.
  std::vector<std::int32_t> sums_;     // Fenwick tree over positions that have an owner.
  std::size_t next_ = 1;
  std::int64_t live_ = 0;
};

/// A distribution of token counts.
struct LengthSummary {
  double mean = 0;
  std::int64_t p50 = 0, p90 = 0, p99 = 0, max = 0;
};

/// Hits of one LRU cache of `cache_tokens`, shared by all requests.
struct CachePoint {
  std::int64_t cache_tokens = 0;
  std::int64_t hit_tokens = 0;
};

/// A prefix that several requests begin with, and that no more tokens can be added to without
/// losing one of them.
struct SharedPrefix {
  std::int64_t tokens = 0;
  std::int64_t requests = 0;
  std::uint64_t first_request = 0;  ///< From 0, in the order of sending.
};

struct TraceStudy {
  std::int64_t block_size = 0;
  std::int64_t requests = 0;
  double span_s = 0;       ///< From the first to the last request.
  double mean_rate = 0;    ///< Requests per second over the span; 0 without a span.
  double peak_second = 0;  ///< Requests in the busiest second of the clock.
  double peak_minute = 0;  ///< Requests per second in the busiest minute of the clock.
  LengthSummary prompt, output;
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  std::int64_t hit_tokens = 0;         ///< With a cache that forgets nothing.
  std::int64_t answer_hit_tokens = 0;  ///< Those of them that were computed as an answer.
  std::int64_t held_tokens = 0;        ///< All blocks of all prompts and answers.
  std::vector<CachePoint> caches;      ///< By size.
  /// Tokens that an LRU cache needs for 50, 90 and 99 % of `hit_tokens`; 0 without hits.
  std::int64_t half = 0, most = 0, nearly_all = 0;
  std::int64_t sessions = 0, session_requests = 0, longest_session = 0;
  std::int64_t families = 0, family_requests = 0;  ///< Requests with a common first block.
  std::vector<SharedPrefix> prefixes;              ///< Most repeated tokens first.
};

/// Counts prompts and answers in blocks, as the prefix cache of a single server would that serves
/// one request after another. Memory grows with the different blocks, by some 100 bytes each.
class PrefixCount {
 public:
  explicit PrefixCount(std::int64_t block_size) : block_size_(block_size) {}
  void add(const workloads::Request& request);
  /// Fills the fields of `out` that are about prefixes.
  void finish(TraceStudy& out) const;

 private:
  struct Block {
    std::uint32_t parent = 0;  ///< Its number plus 1; 0: the first block of a prompt.
    std::uint32_t depth = 0;   ///< Blocks up to its end.
    std::uint32_t requests = 0;
    std::uint32_t first_request = 0;
    bool answer = false;  ///< Only ever computed as an answer.
  };
  void find_prefixes(TraceStudy& out) const;

  std::int64_t block_size_;
  std::uint32_t requests_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // Looked up, never iterated.
  std::vector<Block> blocks_;
  LruStack stack_;
  std::map<std::int64_t, std::int64_t> hits_;  ///< Blocks hit, by the blocks of cache they need.
  std::int64_t answer_hits_ = 0;
};

/// Sends the whole load, or `most` requests of it, to a server that answers each after half a
/// second and 20 ms per token: the times of an open loop do not depend on that.
TraceStudy study_trace(workloads::LoadGenerator& load, std::int64_t block_size, std::int64_t most);

/// `what` names the load; `keys` tell what the file has and nobody uses.
std::string render_trace_text(const TraceStudy& study, const std::string& what,
                              const std::vector<KeyUse>& keys);
std::string render_trace_json(const TraceStudy& study, const std::string& what,
                              const std::vector<KeyUse>& keys);

}  // namespace routesim::tools
