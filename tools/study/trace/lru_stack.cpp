#include "tools/study/trace/lru_stack.h"

#include <algorithm>

namespace routesim::tools {
namespace {

constexpr std::uint32_t kNobody = ~0U;
constexpr std::size_t kFewest = 1024;

}  // namespace

void LruStack::add(std::size_t position, std::int32_t change) {
  for (; position < sums_.size(); position += position & (~position + 1)) sums_[position] += change;
}

/// Owned positions below `position`.
std::int64_t LruStack::before(std::size_t position) const {
  std::int64_t sum = 0;
  for (--position; position > 0; position -= position & (~position + 1)) sum += sums_[position];
  return sum;
}

/// Closes the gaps and makes room for as many touches again.
void LruStack::compact() {
  std::vector<std::uint32_t> kept;
  kept.reserve(static_cast<std::size_t>(live_));
  for (const std::uint32_t block : owner_)
    if (block != kNobody) kept.push_back(block);
  const std::size_t size = std::max(kFewest, 2 * kept.size()) + 1;
  owner_.assign(size, kNobody);
  sums_.assign(size, 0);
  next_ = 1;
  for (const std::uint32_t block : kept) {
    owner_[next_] = block;
    position_[block] = next_;
    add(next_++, 1);
  }
}

void LruStack::touch(std::uint32_t block) {
  if (next_ >= owner_.size()) compact();
  if (block >= position_.size()) position_.resize(std::size_t{block} + 1, 0);
  std::size_t& position = position_[block];
  if (position == 0) {
    ++live_;
  } else {
    owner_[position] = kNobody;
    add(position, -1);
  }
  position = next_++;
  owner_[position] = block;
  add(position, 1);
}

std::int64_t LruStack::depth(std::uint32_t block) const {
  if (block >= position_.size() || position_[block] == 0) return 0;
  return live_ - before(position_[block]);
}

}  // namespace routesim::tools
