// One request inside an engine core, and the table that holds all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "sim/kv/kv_cache.h"
#include "sim/kv/prompt_keys.h"

namespace routesim::sim {

/// A request as the engine's front end hands it over.
struct EngineRequest {
  std::uint32_t handle = 0;          ///< The simulation's live-request slot.
  const EngineKeys* keys = nullptr;  ///< Outlives the request; nullptr without prefix caching.
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 1;    ///< What it will generate (>= 1).
  std::int64_t max_tokens = 1;       ///< What it may generate.
  std::uint64_t output_content = 0;  ///< Content id of the answer.
  bool private_answer = false;       ///< No later prompt can contain the answer: nobody is told.
  std::uint64_t arrival_order = 0;   ///< Total order of arrivals at all engines.
  std::uint64_t draws = 0;           ///< Keys its random draws, in whichever engine.
  std::int32_t priority = 0;         ///< Smaller first, policy `priority` only.
  std::uint32_t adapter = 0;         ///< LoRA adapter; 0 = the base model.
  bool hold_blocks = false;          ///< PD prefill leg: keep the blocks until released.
  /// Endpoint whose tier may have more of the prompt.
  std::optional<std::uint32_t> pull_source{};
  std::int64_t remote_tokens = 0;  ///< PD decode leg: prompt tokens whose KV can be pulled.
};

using SequenceSlot = std::uint32_t;

/// A reference to a sequence slot that goes stale when the slot is reused.
struct SequenceRef {
  SequenceSlot slot = 0;
  std::uint32_t stamp = 0;
};

enum class SequenceState : std::uint8_t {
  kFree,      ///< Slot unused.
  kWaiting,   ///< In the waiting queue, new or preempted.
  kLoading,   ///< Waiting for remote KV.
  kPrefill,   ///< Running, prompt (or recomputation) not yet complete.
  kDecode,    ///< Running, in the decode set.
  kPaused,    ///< Running, decodes, but not in the set (no budget last time, or it speculates).
  kDraining,  ///< Running, last token scheduled but not processed.
  kHeld,      ///< PD prefill leg, finished, blocks held.
  kStoring    ///< Finished, blocks kept until they are copied to the host.
};

/// PD decode leg: how far the prompt's remote KV is.
enum class RemoteKv : std::uint8_t {
  kMissing,  ///< Not pulled yet, or the pull is under way.
  kArrived,  ///< The pull has completed; the next pass may use it.
  kSettled   ///< It was used, is gone, or was not needed: the rest of the prompt is computed here.
};

/// Blocks of a private answer that a preempted sequence gave up, while some of them are left.
struct PrivateRun {
  std::int64_t position;  ///< Position of its first block in the sequence.
  RunRef run;
};

struct KvPull;

/// How far a sequence is with chunks that another engine's tier has.
enum class PullState : std::uint8_t {
  kNone,      ///< Nobody has been asked yet.
  kAsked,     ///< The other engine looks, or sends.
  kAnswered,  ///< It has some: they need room here.
  kSettled    ///< They are here, or will never be.
};

/// How far a sequence is in the tiers outside GPU memory. Chunks are counted from its start.
struct TierProgress {
  std::uint64_t id = 0;             ///< Tells users of the slot apart; 0 = none.
  std::int64_t stored = 0;          ///< Chunks that need not be stored any more.
  std::int64_t hit = 0;             ///< Chunks found in GPU memory and the tier at the last lookup.
  std::int64_t loading_tokens = 0;  ///< Tokens there will be when the load is done; 0 = no load.
  std::int64_t hit_tokens = 0;      ///< Of these, hits that count: at first admission.
  SimTime load_begin;
  std::int32_t storing = 0;  ///< Passes whose copies to the host are under way.
  PullState pull = PullState::kNone;
  KvPull* answer = nullptr;  ///< With kAnswered.
  bool peer_asked = false;   ///< Another engine has answered: files are next.
  bool settles = false;      ///< The request is over: what is copied is readable at once.
  std::vector<BlockHolding> unsettled;  ///< Chunks that are copied and not readable yet.
  /// Something is not copied, or not readable yet.
  bool unfinished() const { return storing > 0 || !unsettled.empty(); }
};

struct Sequence {
  EngineRequest request;
  SequenceState state = SequenceState::kFree;
  RemoteKv remote = RemoteKv::kMissing;
  bool started = false;      ///< The client has its first token.
  bool wastes_slot = false;  ///< Ends by EOS under async scheduling: one slot in vain.
  std::uint32_t stamp = 0;
  std::int32_t preemptions = 0;
  std::int64_t target = 0;       ///< Prompt plus known output: what prefill must compute.
  std::int64_t computed = 0;     ///< As of entry_pass for members of the decode set.
  std::int64_t sampled = 0;      ///< Output tokens sampled, likewise.
  std::int64_t sample_pass = 0;  ///< Pass that sampled the last of them.
  std::int64_t entry_pass = 0;   ///< Pass in which it (re-)entered the decode set.
  std::int64_t streak_pass = 0;  ///< Pass since which it has sampled in every pass.
  std::int64_t finish_pass = 0;  ///< Pass that samples the last token.
  std::int64_t batch_pass = 0;   ///< Pipelines: the last pass that gave it tokens.
  std::int64_t registered = 0;   ///< Leading blocks findable under their key.
  std::int64_t cached = -1;      ///< Prompt tokens hit at first admission.
  std::uint64_t order = 0;       ///< Position in the running list: larger is later.
  std::uint32_t bucket_position = 0;
  std::int64_t scheduled = 0;  ///< Tokens given in the current walk.
  SimTime last_token;          ///< Of a sequence that paused or was preempted.
  BlockHolding holding;        ///< While a private answer decodes, as of its entry into the set.
  std::vector<PrivateRun> given_up;  ///< Private blocks from before preemptions, oldest first.
  TierProgress tier;
  std::vector<BlockHolding> windows;  ///< Per group of windowed layers, from window_first on.
  std::int64_t window_first = 0;
};

/// Owns the sequences of one engine core. Slots are reused; references to them then go stale.
class SequenceTable {
 public:
  Sequence& operator[](SequenceSlot s) { return sequences_[s]; }
  const Sequence& operator[](SequenceSlot s) const { return sequences_[s]; }
  SequenceRef ref(SequenceSlot s) const { return {s, sequences_[s].stamp}; }
  bool current(SequenceRef r) const {
    return r.slot < sequences_.size() && sequences_[r.slot].stamp == r.stamp;
  }
  const std::vector<Sequence>& all() const { return sequences_; }

  SequenceSlot acquire() {
    if (free_slots_.empty()) {
      sequences_.emplace_back();
      return static_cast<SequenceSlot>(sequences_.size() - 1);
    }
    const SequenceSlot s = free_slots_.back();
    free_slots_.pop_back();
    return s;
  }

  /// Frees the slot. Its vectors keep their memory for the next user.
  void recycle(SequenceSlot s) {
    Sequence& q = sequences_[s];
    BlockHolding holding = std::move(q.holding);
    std::vector<PrivateRun> given_up = std::move(q.given_up);
    given_up.clear();
    const std::uint32_t stamp = q.stamp + 1;
    q = Sequence{};
    q.stamp = stamp;
    q.holding = std::move(holding);
    q.given_up = std::move(given_up);
    free_slots_.push_back(s);
  }

  /// The newest sequence of `handle` in `list`; a stale reference if there is none. A handle may
  /// have a new owner while the release of what the last one held is under way.
  SequenceRef newest_in(const std::vector<SequenceSlot>& list, std::uint32_t handle) const {
    for (std::size_t i = list.size(); i-- > 0;)
      if (sequences_[list[i]].request.handle == handle) return ref(list[i]);
    return {.slot = 0, .stamp = ~std::uint32_t{0}};
  }

 private:
  std::vector<Sequence> sequences_;
  std::vector<SequenceSlot> free_slots_;
};

}  // namespace routesim::sim
