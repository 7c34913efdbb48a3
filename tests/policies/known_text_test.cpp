#include "policies/known_text.h"

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
  EXPECT_EQ(text.tokenized(prompt(125, 6, 1), 4200, false), 131U) << "nothing known yet";
  EXPECT_EQ(text.tokenized(prompt(125, 6, 2), 4200, false), 124U) << "whole chunks only";
  EXPECT_EQ(text.tokenized(prompt(125, 6, 1), 4200, false), 130U) << "the first was stored whole";
  EXPECT_EQ(text.tokenized(prompt(125, 6, 2), 4200, false), 124U) << "the second never was";
}

TEST(KnownText, BelowTheRatioEverythingIsTokenisedAndStored) {
  KnownText text({.chunk_bytes = 256, .overlap_ratio = 0.8, .block_tokens = 32});
  text.tokenized(prompt(100, 100, 1), 6400, false);
  EXPECT_EQ(text.tokenized(prompt(100, 100, 2), 6400, false), 200U) << "half is known";
  EXPECT_EQ(text.tokenized(prompt(100, 100, 2), 6400, false), 200U) << "known whole: all of it";
}

TEST(KnownText, ADryRunStoresNothing) {
  KnownText text({.block_tokens = 32});
  EXPECT_EQ(text.tokenized(prompt(125, 6, 1), 4200, true), 131U);
  EXPECT_EQ(text.tokenized(prompt(125, 6, 2), 4200, false), 131U) << "the first left no trace";
}

TEST(KnownText, ForgetsTheOldestChunks) {
  KnownText text({.cache_chunks = 4, .block_tokens = 32});
  text.tokenized(prompt(0, 8, 1), 256, false);
  EXPECT_EQ(text.tokenized(prompt(0, 6, 1), 256, true), 6U);
  text.tokenized(prompt(0, 8, 2), 256, false);
  // All four chunks now belong to prompt 2; prompt 1 is unknown and would be stored again.
  text.tokenized(prompt(0, 2, 1), 1000, false);
  EXPECT_EQ(text.tokenized(prompt(0, 8, 2), 256, true), 8U);
}

}  // namespace
}  // namespace routesim::policies
