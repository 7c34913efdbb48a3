// vLLM's KV event stream as it travels over ZMQ: three frames (topic, 8-byte big-endian sequence
// number, msgpack batch). Decoding is strict: hostile bytes give an error, and never more memory
// than some fifty times their size (a list of nothing but nils).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "policies/index/block_keys.h"

namespace routesim::policies {

/// Blocks became available on an endpoint.
struct BlockStored {
  std::vector<std::uint64_t> hashes;  ///< The engine's own block hashes.
  std::uint64_t parent = 0;           ///< Engine hash of the preceding block, 0 = none.
  std::vector<std::uint32_t> tokens;  ///< Token ids of all the blocks; may be empty.
  std::int64_t block_size = 0;        ///< The engine's block size in tokens.
  std::optional<std::int64_t> lora_id;
  std::string medium;  ///< "", "GPU", "CPU", ...
  std::optional<std::string> lora_name;
  /// Per engine block the identifiers of its extra keys (empty = none); absent when nil.
  std::optional<std::vector<BlockExtra>> extra_keys;
  std::optional<std::uint32_t> group_idx;
  std::optional<std::string> kv_cache_spec_kind;
  std::optional<std::int64_t> sliding_window;
  bool operator==(const BlockStored&) const = default;
};

/// Blocks were evicted from a tier of an endpoint.
struct BlockRemoved {
  std::vector<std::uint64_t> hashes;
  std::string medium;
  std::optional<std::uint32_t> group_idx;
  bool operator==(const BlockRemoved&) const = default;
};

/// The endpoint reset its prefix cache.
struct AllBlocksCleared {
  bool operator==(const AllBlocksCleared&) const = default;
};

using KvEvent = std::variant<BlockStored, BlockRemoved, AllBlocksCleared>;

/// The payload of one message.
struct KvEventBatch {
  double timestamp = 0;  ///< Seconds, the engine's clock; not used.
  std::vector<KvEvent> events;
  std::optional<std::int64_t> data_parallel_rank;  ///< Decoded and ignored, as upstream does.
  bool operator==(const KvEventBatch&) const = default;
};

/// Limits that keep hostile input cheap.
struct KvDecodeLimits {
  std::size_t max_bytes = std::size_t{16} << 20;  ///< Largest payload accepted: 3 million tokens.
  std::size_t max_depth = 8;                      ///< Deepest nesting accepted.
};

/// Decodes one batch. One bad event discards the whole message, as the vLLM adapter does. Returns
/// the error text, empty on success; `out` is unspecified on failure.
std::string decode_kv_batch(std::span<const std::uint8_t> payload, KvEventBatch& out,
                            const KvDecodeLimits& limits = {});
/// Decodes a single event (one element of a batch) that fills `payload` exactly.
std::string decode_kv_event(std::span<const std::uint8_t> payload, KvEvent& out,
                            const KvDecodeLimits& limits = {});
/// Decodes a block hash (uint64, int64 or bytes; narrower integers are refused, because upstream's
/// msgpack library hands them over as types its adapter does not accept).
std::string decode_kv_hash(std::span<const std::uint8_t> payload, std::uint64_t& out);

// ---- Transport ---------------------------------------------------------------------------------

/// A topic's parts: "kv@<pod>@<model>" split at "@"; any other number of parts is a pod of that
/// whole text and no model.
struct KvTopic {
  std::string_view pod;
  std::string_view model;
};
KvTopic parse_kv_topic(std::string_view topic);

/// A message's sequence number: exactly 8 bytes, big-endian; nothing otherwise.
std::optional<std::uint64_t> parse_kv_sequence(std::span<const std::uint8_t> frame);
std::array<std::uint8_t, 8> encode_kv_sequence(std::uint64_t sequence);

/// The action for a message, given its sequence number.
enum class SequenceAction : std::uint8_t {
  kDeliver,         ///< In order, or gaps do not matter.
  kReplay,          ///< Messages are missing: ask for a replay from `replay_from`, then deliver.
  kClearAndReplay,  ///< The number went back (restart): clear the endpoint, replay everything.
  kDrop             ///< Only by a ReplayTracker: a replay has it, or lacks what came before it.
};
struct SequenceVerdict {
  SequenceAction action = SequenceAction::kDeliver;
  std::uint64_t replay_from = 0;
};

/// Follows one publisher's sequence numbers. Without a replay socket gaps are ignored.
class SequenceTracker {
 public:
  explicit SequenceTracker(bool has_replay_socket) : replay_(has_replay_socket) {}
  SequenceVerdict observe(std::uint64_t sequence);
  std::uint64_t missed() const { return missed_; }  ///< Messages skipped over so far.

 private:
  bool replay_;
  std::optional<std::uint64_t> last_;
  std::uint64_t missed_ = 0;
};

/// Follows a publisher that has a replay socket as llm-d-router 0.10.0 does, also while replays
/// fail (pkg/kvevents/zmq_subscriber.go). A new subscription asks for everything first.
class ReplayTracker {
 public:
  /// No replay is asked for so soon after one that failed.
  static constexpr Duration kCooldown = Duration::seconds(30);
  /// `asked`: a replay has just been tried for this message.
  SequenceVerdict observe(std::uint64_t sequence, SimTime now, bool asked = false);
  /// A replay brought everything up to `last`; nothing where nothing was published.
  void on_replayed(std::optional<std::uint64_t> last) {
    if (last) last_ = last;
    failed_.reset();
  }
  /// It did not bring all that it was asked for. The caller clears the endpoint.
  void on_replay_failed(SimTime now) {
    last_.reset();
    failed_ = now;
  }

 private:
  std::optional<std::uint64_t> last_;  ///< The newest in the index.
  std::optional<std::uint64_t> live_;  ///< The newest that came by itself.
  std::optional<SimTime> failed_;
};

/// The worker (0..concurrency-1) that handles a publisher: one publisher's events stay ordered.
/// `source` is the subscriber's endpoint, or the topic's pod text when there is none.
std::uint32_t kv_worker(std::string_view source, std::uint32_t concurrency);
/// "tcp://<address>:<socket_port + rank>".
std::string kv_subscriber_endpoint(std::string_view address, int socket_port, int rank_index);

}  // namespace routesim::policies
