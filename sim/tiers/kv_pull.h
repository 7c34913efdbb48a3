// A pull of KV chunks into the host memory of an engine core, and the messages about it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/kv/sequence.h"

namespace routesim::sim {

/// Chunks that one engine core asks another one for, through host memory on both sides: vLLM's p2p
/// tier (v0.27.1 v1/kv_offload/tiering/p2p). Each side acts once per step. KvPulls owns it.
struct KvPull {
  std::uint32_t id = 0;
  std::uint32_t handle = 0;      ///< Of the request that asks.
  SequenceSlot slot = 0;         ///< Its sequence at the asking engine,
  std::uint64_t owner = 0;       ///< and the sequence's TierProgress::id.
  std::uint32_t source = 0;      ///< Endpoint that is asked.
  SimTime asked;                 ///< When.
  std::vector<BlockKey> chunks;  ///< Keys of all whole chunks of the request.
  std::int64_t first = 0;        ///< The first chunk that is missing.
  std::int64_t found = 0;        ///< How many the other engine has from there on.
  double bytes = 0;              ///< That move, groups with a window included.
  bool disk = false;             ///< Files answer, not another engine.
};

/// An engine core tells this to the other side of a pull.
struct PullMessage {
  enum class Kind : std::uint8_t {
    kAsk,     ///< From the engine that wants chunks: it has made a pull.
    kAnswer,  ///< From the one that has them: `found` is known, and stays until the end.
    kFetch,   ///< There is room for what was found: send it.
    kSend,    ///< The bytes can move.
    kWrite,   ///< Chunks for files: `pull`, of which only `chunks` and `bytes` count.
    kDone,    ///< They have moved.
    kDrop     ///< Nobody wants them any more, or there is no room.
  };
  Kind kind = Kind::kAsk;
  KvPull* pull = nullptr;
  std::unique_ptr<KvPull> made = {};  ///< With kAsk and kWrite: `pull`, which the receiver owns.
};
/// KvPull::found of an answer that has to be asked for again: chunks are being written.
inline constexpr std::int64_t kAskAgain = -1;

/// An engine core hears this of a pull, at the end of its running step: the other side asks,
/// answers, wants the chunks, has got or sent them, or gives up.
enum class PullNews : std::uint8_t {
  kAsked,
  kAnswered,
  kFetch,
  kSent,
  kArrived,
  kFailed,
  kDropped
};

}  // namespace routesim::sim
