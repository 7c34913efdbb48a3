// How far back in an LRU list each block is, without keeping the list.
#pragma once

#include <cstdint>
#include <vector>

namespace routesim::tools {

/// The blocks 0 … n - 1 in the order of their last use. One touch or question costs O(log n); the
/// memory is that of at most twice the blocks that were touched.
class LruStack {
 public:
  /// Makes the block the most recent. Blocks may come in any order.
  void touch(std::uint32_t block);
  /// Blocks that were used no earlier than this one, itself included; 0 if it was never touched. An
  /// LRU cache holds it exactly when it has room for so many.
  std::int64_t depth(std::uint32_t block) const;

 private:
  void add(std::size_t position, std::int32_t change);
  std::int64_t before(std::size_t position) const;
  void compact();

  std::vector<std::size_t> position_;  // By block; 0: never touched.
  std::vector<std::uint32_t> owner_;   // By position; kNobody where the block moved on.
  std::vector<std::int32_t> sums_;     // Fenwick tree over positions that have an owner.
  std::size_t next_ = 1;
  std::int64_t live_ = 0;
};

}  // namespace routesim::tools
