#include "sim/prompt_keys.h"

#include <algorithm>

namespace routesim::sim {

void append_engine_keys(const workloads::Prompt& prompt, std::int64_t block_size, PromptKeys& out) {
  BlockKey state = 0x5ca1ab1e;
  std::int64_t filled = 0;
  out.engine.reserve(static_cast<std::size_t>(prompt.tokens / block_size));
  for (const workloads::Segment& segment : prompt.segments) {
    std::int64_t offset = segment.offset;
    std::int64_t left = segment.length;
    while (left > 0) {
      const std::int64_t piece = std::min(left, block_size - filled);
      state = fold_piece(state, segment.content, offset, piece);
      offset += piece;
      left -= piece;
      filled += piece;
      if (filled == block_size) {
        out.engine.push_back(state);
        filled = 0;
      }
    }
  }
  out.tail_state = state;
  out.tail_tokens = filled;
}

}  // namespace routesim::sim
