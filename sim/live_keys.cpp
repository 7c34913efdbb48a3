#include "sim/live_keys.h"

#include <iterator>

#include "base/rng.h"

namespace routesim::sim {

void LiveKeys::request_keys(std::uint32_t handle, std::int64_t block_size, std::int64_t first_block,
                            std::int64_t blocks, std::vector<std::uint64_t>& out) {
  if (!table_.router().precise) return;
  const auto block = static_cast<std::int64_t>(table_.router().precise->block_size());
  const std::int64_t begin = first_block * block_size;
  const std::int64_t end = begin + blocks * block_size;
  // Only whole canonical blocks inside the event, on the canonical grid, become visible.
  if (begin % block != 0) return;
  const std::vector<std::uint64_t>& prompt = live_[handle].keys->request;
  for (std::int64_t b = begin / block; (b + 1) * block <= end; ++b) {
    if (b < static_cast<std::int64_t>(prompt.size()))
      out.push_back(prompt[static_cast<std::size_t>(b)]);
    else
      out.push_back(answer_key(handle, b));
  }
}

// Only a follow-up turn can ask for blocks of an answer, so for requests without a session a unique
// stand-in serves as well as hashing the tokens.
BlockKey LiveKeys::answer_key(std::uint32_t handle, std::int64_t block) {
  LiveRequest& live = live_[handle];
  if (live.request.session == 0)
    return mix64(live.request.output_content, static_cast<std::uint64_t>(block)) | 1;
  const auto first = static_cast<std::int64_t>(live.keys->request.size());
  if (live.answer_keys.empty()) live.answer_state = live.keys->request_end;
  while (first + std::ssize(live.answer_keys) <= block) {
    const std::int64_t begin = (first + std::ssize(live.answer_keys)) *
                               static_cast<std::int64_t>(table_.router().precise->block_size());
    live.answer_keys.push_back(table_.next_request_key(live.answer_state, *live.request.prompt,
                                                       live.request.output_content, begin));
  }
  return live.answer_keys[static_cast<std::size_t>(block - first)];
}

}  // namespace routesim::sim
