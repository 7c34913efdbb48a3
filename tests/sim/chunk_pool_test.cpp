#include "sim/tiers/chunk_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>

#include "base/rng.h"

namespace routesim::sim {
namespace {

/// The same as a list and a map.
struct Plain {
  std::int64_t capacity;
  std::list<BlockKey> order;
  std::map<BlockKey, int> keepers;
  std::int64_t evictions = 0;

  bool insert(BlockKey key) {
    if (keepers.contains(key)) return true;
    if (std::ssize(order) == capacity) {
      const auto old =
          std::find_if(order.begin(), order.end(), [this](BlockKey k) { return keepers[k] == 0; });
      if (old == order.end()) return false;
      keepers.erase(*old);
      order.erase(old);
      ++evictions;
    }
    order.push_back(key);
    keepers[key] = 0;
    return true;
  }
  std::int64_t look_up(const std::vector<BlockKey>& chunks) {
    std::size_t n = 0;
    while (n < chunks.size() && keepers.contains(chunks[n])) ++n;
    for (std::size_t i = n; i-- > 0;) {
      order.remove(chunks[i]);
      order.push_back(chunks[i]);
    }
    return static_cast<std::int64_t>(n);
  }
};

TEST(ChunkPool, AgreesWithAListAndAMap) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    RandomStream random(seed, Stream::kTest, 11);
    const auto capacity = static_cast<std::int64_t>(1 + random.below(seed % 2 ? 20 : 3000));
    ChunkPool pool(capacity);
    Plain plain{.capacity = capacity, .order = {}, .keepers = {}};
    std::vector<BlockKey> kept;
    for (int i = 0; i < 4000; ++i) {
      const BlockKey first = 1 + random.below(static_cast<std::uint64_t>(2 * capacity));
      std::vector<BlockKey> chunks;
      for (BlockKey k = 0; k < 1 + random.below(6); ++k) chunks.push_back(first + k);
      if (random.below(3) == 0) {
        ASSERT_EQ(pool.leading(chunks), plain.look_up(chunks));
        ASSERT_EQ(pool.look_up(chunks), plain.look_up(chunks));
      } else {
        for (const BlockKey key : chunks) ASSERT_EQ(pool.insert(key), plain.insert(key));
      }
      if (pool.contains(first) && random.below(8) == 0) {
        pool.keep({&first, 1});
        ++plain.keepers[first];
        kept.push_back(first);
      } else if (!kept.empty() && random.below(4) == 0) {
        pool.release({&kept.back(), 1});
        --plain.keepers[kept.back()];
        kept.pop_back();
      }
      ASSERT_EQ(pool.size(), std::ssize(plain.order));
      ASSERT_EQ(pool.evictions(), plain.evictions);
    }
    pool.verify();
  }
}

// Two parts of three chunks: what lay in the lost one is found until it is forgotten, cannot be
// read, takes no room and is not stored again.
TEST(ChunkPool, APartMayBeLost) {
  ChunkPool pool(0);
  EXPECT_TRUE(pool.in_parts());
  EXPECT_FALSE(pool.insert(1));
  const std::uint32_t first = pool.add_part(3), second = pool.add_part(3);
  const std::vector<BlockKey> keys = {1, 2, 3, 4, 5, 6};
  for (const BlockKey key : keys) EXPECT_TRUE(pool.insert(key));
  EXPECT_EQ(pool.readable(keys), 6);
  pool.lose_part(first);
  pool.verify();
  EXPECT_EQ(pool.size(), 3);
  EXPECT_EQ(pool.capacity(), 3);
  EXPECT_EQ(pool.look_up(keys), 6);
  for (const BlockKey key : keys) EXPECT_TRUE(pool.insert(key));
  std::int64_t readable = 0;
  for (const BlockKey key : keys) readable += pool.readable({&key, 1});
  EXPECT_EQ(readable, 3);
  EXPECT_EQ(pool.evictions(), 0);
  // Others make room in what is left.
  EXPECT_TRUE(pool.insert(7));
  EXPECT_EQ(pool.evictions(), 1);
  pool.forget_part(first);
  pool.verify();
  std::int64_t left = 0;
  for (const BlockKey key : keys) left += pool.contains(key) ? 1 : 0;
  EXPECT_EQ(left, 2);
  EXPECT_EQ(pool.add_part(1), first) << "numbers are used again";
  pool.verify();
  EXPECT_TRUE(pool.insert(8));
  EXPECT_EQ(pool.size(), 4);
  pool.lose_part(second);
  EXPECT_EQ(pool.size(), 1);
  pool.verify();
}

// A part without room has a number of its own until it is forgotten, and the others stay.
TEST(ChunkPool, APartMayHaveNoRoom) {
  ChunkPool pool(0);
  const std::uint32_t empty = pool.add_part(0);
  pool.lose_part(empty);
  const std::uint32_t part = pool.add_part(3);
  EXPECT_NE(part, empty);
  pool.forget_part(empty);
  EXPECT_EQ(pool.add_part(0), empty);
  for (BlockKey key = 1; key <= 4; ++key) EXPECT_TRUE(pool.insert(key));
  pool.verify();
  EXPECT_EQ(pool.size(), 3);
  EXPECT_EQ(pool.evictions(), 1);
}

}  // namespace
}  // namespace routesim::sim
