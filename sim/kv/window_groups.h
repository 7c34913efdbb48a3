// KV blocks of layers that see only a window of the context, or keep a state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/kv/sequence.h"
#include "sim/rules/engine_config.h"

namespace routesim::sim {

/// Layers with a window, as vLLM's hybrid KV cache manager keeps them. They form groups as large as
/// that of the layers that see everything, and each group takes blocks from the same pool: for
/// every block of a prompt one more per group. A sequence gives up those that leave its window;
/// they stay findable until they are evicted, which is before the others, as they were freed
/// before. A prefix counts as cached only as far as every group has the window before its end.
/// Every call costs by the block. With no group all calls do nothing. Layers that keep a state
/// instead (EngineRules::state_groups) hold one block per sequence and group from its admission to
/// its end; without a prefix cache nobody looks for it.
class WindowGroups {
 public:
  WindowGroups(const EngineRules& rules, KvCache& kv);
  WindowGroups(const WindowGroups&) = delete;
  WindowGroups& operator=(const WindowGroups&) = delete;

  std::int64_t groups() const { return std::ssize(hits_); }
  /// Blocks that a sequence of `blocks` blocks holds in all groups, if it came to that without a
  /// hit: the window, and what one step adds to it.
  std::int64_t most_blocks(std::int64_t blocks) const;
  /// Blocks that a sequence comes to lack at most until it has `more` blocks more.
  std::int64_t most_needed(const Sequence& q, std::int64_t more) const;
  /// Blocks that all groups take when `q` takes `blocks` more.
  std::int64_t taken_with(const Sequence& q, std::int64_t blocks) const;
  /// Blocks that each group lacks for a sequence of `blocks` blocks.
  std::int64_t need(const Sequence& q, std::int64_t blocks) const;
  /// Blocks that the windows still see of `blocks` blocks that are pulled from elsewhere, all
  /// groups together. Nobody needs what is in the others.
  std::int64_t pulled_blocks(std::int64_t blocks) const;

  /// Shortens `hits`, a cached prefix of `keys`, to what all groups have, and finds their blocks.
  void lookup(std::span<const BlockKey> keys, CachedPrefix& hits);
  /// Blocks found by the last lookup, all groups together.
  std::int64_t hit_blocks() const;
  /// Found blocks that are in the free queue, so that taking them shrinks it.
  std::int64_t unreferenced_hits() const;
  /// Gives `q` the found blocks; `hit` is the length of the prefix.
  void take_hits(Sequence& q, std::int64_t hit);

  /// A prefix of `hit` blocks was found and the ones up to `blocks` are loaded: the windows then
  /// see found blocks, and new ones. Returns the first new one.
  std::int64_t first_loaded(std::int64_t hit, std::int64_t blocks) const;
  /// Found blocks in the free queue that the windows then still see.
  std::int64_t unreferenced_hits(std::int64_t hit, std::int64_t blocks) const;
  /// Gives `q` these found blocks; allocate() gives it the new ones.
  void take_hits(Sequence& q, std::int64_t hit, std::int64_t blocks);

  void allocate(Sequence& q, std::int64_t blocks);
  /// Gives up the blocks that the next token to be computed does not see. False if there are none.
  bool leave(Sequence& q);
  /// Makes the blocks q.registered, ... findable; those of a group follow the ones it has.
  void register_keys(Sequence& q, std::span<const BlockKey> keys);
  void release(Sequence& q);

 private:
  CachedPrefix seen_hits(std::size_t group, std::int64_t hit, std::int64_t blocks) const;
  std::int64_t shorten(std::size_t group, std::span<const BlockKey> keys, std::int64_t hit) const;

  KvCache& kv_;
  bool states_;  ///< Groups hold a state each.
  std::int64_t window_tokens_;
  std::int64_t seen_blocks_;        ///< Blocks that let the next token see its whole window.
  std::int64_t step_blocks_;        ///< The most that one step adds to a sequence.
  std::vector<CachedPrefix> hits_;  ///< Per group.
};

}  // namespace routesim::sim
