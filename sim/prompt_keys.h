// Block keys of prompts and answers. A prompt is hashed once, however often it is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/base/rng.h"
#include "sim/kv_cache.h"
#include "workloads/request.h"

namespace routesim::sim {

/// Folds one piece of text into a block key: `length` tokens of `content` from `offset` on. Equal
/// token ranges are equal pieces (workloads::Segment), so no token needs to be looked at.
constexpr BlockKey fold_piece(BlockKey state, std::uint64_t content, std::int64_t offset,
                              std::int64_t length) {
  const std::uint64_t piece =
      mix64(content + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(offset),
            static_cast<std::uint64_t>(length));
  return mix64(state, piece) | 1;  // never 0, which means "not hashed"
}

/// The keys of one prompt at one engine block size, and at the router's canonical one.
struct PromptKeys {
  std::vector<BlockKey> engine;        ///< One per full block of the prompt.
  BlockKey tail_state = 0;             ///< Key state after the tokens behind the last full block.
  std::int64_t tail_tokens = 0;        ///< How many those are, 0 … block_size - 1.
  std::vector<std::uint64_t> request;  ///< The router's keys; empty when nobody asks for them.
};

/// Engine-side keys of a prompt: the same chain vLLM's hashing yields, up to the hash function.
void append_engine_keys(const workloads::Prompt& prompt, std::int64_t block_size, PromptKeys& out);

}  // namespace routesim::sim
