#include "policies/requirements.h"

namespace routesim::policies {

ApproxScheme ApproxSettings::scheme(std::int64_t reported_block_size) const {
  constexpr std::int64_t kCharactersPerToken = 4;
  const bool tune = auto_tune && reported_block_size > 0;
  if (hashing != ApproxHashing::kTokens)
    return {.hashing = hashing,
            .block_size = tune ? reported_block_size * kCharactersPerToken : block_size,
            .max_blocks = max_blocks};
  const std::int64_t block = effective_approx_block(tune ? reported_block_size : block_size);
  return {.hashing = hashing,
          .block_size = block,
          .max_blocks = max_tokens > 0 ? max_tokens / block : max_blocks};
}

}  // namespace routesim::policies
