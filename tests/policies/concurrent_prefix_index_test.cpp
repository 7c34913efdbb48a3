// ConcurrentPrefixIndex under eight writers and eight readers; run it under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "policies/index/prefix_index.h"

namespace routesim::policies {
namespace {

constexpr std::size_t kLength = 60;

std::vector<BlockKey> prompt(std::uint64_t n) {
  std::vector<BlockKey> keys(kLength);
  for (std::size_t i = 0; i < kLength; ++i) keys[i] = i < 30 ? mix64(n % 4, i) : mix64(n + 100, i);
  return keys;
}

// The events of round `i` of a writer. Each writer owns one endpoint and only ever stores whole
// prompts and removes them from the end, so every state a reader can see has contiguous prefixes.
void write(PrefixIndex& index, std::uint32_t writer, int i) {
  const auto keys = prompt(static_cast<std::uint64_t>(i % 24));
  index.stored(EndpointId(writer), kGpuTier, 0, keys, keys);
  if (i % 3 == 0)
    index.removed(EndpointId(writer), kGpuTier,
                  std::vector<std::uint64_t>(keys.rbegin(), keys.rend()));
  if (i % 50 == 49) index.cleared(EndpointId(writer));
}

void run(std::size_t size, int rounds) {
  ConcurrentPrefixIndex index({.size = size, .pod_cache_size = 16});
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> lookups{0};
  std::vector<std::thread> threads;
  for (std::uint32_t w = 0; w < 8; ++w)
    threads.emplace_back([&index, w, rounds] {
      for (int i = 0; i < rounds; ++i) {
        index.exclusive([&](PrefixIndex& inner) { write(inner, w, i); });
      }
    });
  for (std::uint32_t r = 0; r < 8; ++r)
    threads.emplace_back([&index, &stop, &lookups, r] {
      MatchScratch scratch;
      for (std::uint64_t i = r; !stop.load(std::memory_order_relaxed); ++i) {
        index.exclusive([&](PrefixIndex& inner) { inner.match(prompt(i % 24), scratch); });
        for (const PrefixMatch& m : scratch.matches()) {
          if (m.blocks > kLength || m.endpoint.value() >= 8 || m.weighted != m.blocks)
            ADD_FAILURE() << "endpoint " << m.endpoint.value() << " blocks " << m.blocks;
        }
        lookups.fetch_add(1, std::memory_order_relaxed);
      }
    });
  for (std::size_t w = 0; w < 8; ++w) threads[w].join();
  while (lookups.load() < 100) std::this_thread::yield();
  stop = true;
  for (std::size_t r = 8; r < 16; ++r) threads[r].join();

  // What is left equals what one thread alone leaves, as far as order cannot matter: each
  // endpoint's rows depend on its own writer only.
  if (size < 10'000) {
    EXPECT_LE(index.exclusive([](PrefixIndex& inner) { return inner.request_key_count(); }), size);
    return;
  }
  PrefixIndex alone({.size = size, .pod_cache_size = 16});
  for (int i = 0; i < rounds; ++i) write(alone, 0, i);
  MatchScratch many;
  MatchScratch one;
  for (std::uint64_t n = 0; n < 24; ++n) {
    index.exclusive([&](PrefixIndex& inner) { inner.match(prompt(n), many); });
    alone.match(prompt(n), one);
    const std::uint32_t expected = one.matches().empty() ? 0 : one.matches()[0].blocks;
    EXPECT_EQ(many.matches().size(), expected == 0 ? 0u : 8u);
    for (const PrefixMatch& m : many.matches()) EXPECT_EQ(m.blocks, expected);
  }
}

TEST(ConcurrentPrefixIndex, EightWritersEightReaders) { run(100'000'000, 200); }

TEST(ConcurrentPrefixIndex, EightWritersEightReadersAtTheCap) { run(500, 100); }

}  // namespace
}  // namespace routesim::policies
