// The router's keys of stored blocks, computed while their request is alive.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/kv/prompt_keys.h"
#include "sim/live_requests.h"

namespace routesim::sim {

/// Answers the engines' questions about keys from the requests under way.
class LiveKeys final : public SequenceKeySource {
 public:
  /// `live` and `table` outlive this.
  LiveKeys(LiveRequests& live, PromptKeyTable& table) : live_(live), table_(table) {}

  void request_keys(std::uint32_t handle, std::int64_t block_size, std::int64_t first_block,
                    std::int64_t blocks, std::vector<std::uint64_t>& out) override;
  BlockKey answer_key(std::uint32_t handle, std::int64_t block) override;

 private:
  LiveRequests& live_;
  PromptKeyTable& table_;
};

}  // namespace routesim::sim
