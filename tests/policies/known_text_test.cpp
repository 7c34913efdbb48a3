#include "policies/index/known_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace routesim::policies {
namespace {

/// Keys of `shared` blocks common to all prompts and `own` blocks of prompt `n`.
std::vector<BlockKey> prompt(int shared, int own, int n) {
  std::vector<BlockKey> keys;
  for (int i = 0; i < shared; ++i) keys.push_back(static_cast<BlockKey>(1000 + i));
  for (int i = 0; i < own; ++i) keys.push_back(static_cast<BlockKey>(100'000 * n + i));
  return keys;
}

TEST(KnownText, AsksOnlyForTheKnownPartOnceItCoversTheRatio) {
  KnownText text({.chunk_bytes = 256, .overlap_ratio = 0.8, .block_tokens = 32});
  // Moreh's prompts: 4,000 shared and 200 own tokens, 131 whole blocks; a chunk is two blocks.
  EXPECT_EQ(text.tokenized(prompt(125, 6, 1), {.tokens = 4200}, false), 131U)
      << "nothing known yet";
  EXPECT_EQ(text.tokenized(prompt(125, 6, 2), {.tokens = 4200}, false), 124U)
      << "whole chunks only";
  EXPECT_EQ(text.tokenized(prompt(125, 6, 1), {.tokens = 4200}, false), 130U)
      << "the first was stored whole";
  EXPECT_EQ(text.tokenized(prompt(125, 6, 2), {.tokens = 4200}, false), 124U)
      << "the second never was";
}

TEST(KnownText, BelowTheRatioEverythingIsTokenisedAndStored) {
  KnownText text({.chunk_bytes = 256, .overlap_ratio = 0.8, .block_tokens = 32});
  text.tokenized(prompt(100, 100, 1), {.tokens = 6400}, false);
  EXPECT_EQ(text.tokenized(prompt(100, 100, 2), {.tokens = 6400}, false), 200U) << "half is known";
  EXPECT_EQ(text.tokenized(prompt(100, 100, 2), {.tokens = 6400}, false), 200U)
      << "known whole: all of it";
}

TEST(KnownText, ADryRunStoresNothing) {
  KnownText text({.block_tokens = 32});
  EXPECT_EQ(text.tokenized(prompt(125, 6, 1), {.tokens = 4200}, true), 131U);
  EXPECT_EQ(text.tokenized(prompt(125, 6, 2), {.tokens = 4200}, false), 131U)
      << "the first left no trace";
}

TEST(KnownText, ForgetsTheOldestChunks) {
  KnownText text({.cache_chunks = 4, .block_tokens = 32});
  text.tokenized(prompt(0, 8, 1), {.tokens = 256}, false);
  EXPECT_EQ(text.tokenized(prompt(0, 6, 1), {.tokens = 256}, true), 6U);
  text.tokenized(prompt(0, 8, 2), {.tokens = 256}, false);
  // All four chunks now belong to prompt 2; prompt 1 is unknown and would be stored again.
  text.tokenized(prompt(0, 2, 1), {.tokens = 1000}, false);
  EXPECT_EQ(text.tokenized(prompt(0, 8, 2), {.tokens = 256}, true), 8U);
}

TEST(KnownText, LongerTokensMakeChunksShorter) {
  // A chunk of 256 bytes is 40 tokens of 6.4 bytes: it ends inside every other block of 16.
  KnownText text({.chunk_bytes = 256, .overlap_ratio = 0.8, .block_tokens = 16});
  const std::vector<BlockKey> first = prompt(100, 25, 1);  // 2,000 tokens, 50 chunks
  EXPECT_EQ(text.tokenized(first, {.tokens = 2000, .bytes = 12'800}, false), 125U);
  EXPECT_EQ(text.tokenized(first, {.tokens = 2000, .bytes = 12'800}, true), 125U);
  // Of 1,640 tokens the first 1,600 are known: 40 chunks, 100 blocks.
  EXPECT_EQ(text.tokenized(prompt(100, 2, 2), {.tokens = 1640, .bytes = 10'496}, true), 100U);
  // 99 blocks are 1,584 tokens; chunk 40 needs block 100, and 39 chunks are 1,560 tokens.
  EXPECT_EQ(text.tokenized(prompt(99, 3, 2), {.tokens = 1640, .bytes = 10'496}, true), 97U);
  // Another length, whose bytes were rounded down, ends its chunks at the same tokens.
  EXPECT_EQ(text.tokenized(prompt(100, 2, 2), {.tokens = 1641, .bytes = 10'502}, true), 100U);
  // 40 of 51 chunks are less than the ratio.
  EXPECT_EQ(text.tokenized(prompt(100, 28, 2), {.tokens = 2048, .bytes = 13'107}, true), 128U);
}

TEST(KnownText, ChunksSmallerThanABlockShareItsKey) {
  KnownText text({.chunk_bytes = 16, .overlap_ratio = 0.5, .block_tokens = 16});
  text.tokenized(prompt(10, 0, 1), {.tokens = 160, .bytes = 640}, false);
  EXPECT_EQ(text.tokenized(prompt(10, 0, 1), {.tokens = 160, .bytes = 640}, true), 10U);
  EXPECT_EQ(text.tokenized(prompt(6, 4, 1), {.tokens = 160, .bytes = 640}, true), 6U);
}

}  // namespace
}  // namespace routesim::policies
