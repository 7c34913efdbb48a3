#include "policies/index/block_keys.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "policies/index/sha256.h"
#include "tests/policies/plugin_bench.h"
#include "tests/policies/vector_file.h"

namespace routesim::policies {
namespace {

using test::Json;
using test::u64;
using test::u64_list;
using test::vector_cases;

std::string hex(std::span<const std::uint8_t> bytes) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t b : bytes) (out += digits[b >> 4]) += digits[b & 15];
  return out;
}

BlockExtra extra_of(const Json& j) { return j.is_null() ? BlockExtra{} : j.get<BlockExtra>(); }

std::vector<BlockExtra> extras_of(const Json& j) {
  std::vector<BlockExtra> out;
  for (const Json& e : j) out.push_back(extra_of(e));
  return out;
}

TEST(Sha256, PublishedDigests) {
  const auto digest = [](const std::string& s) {
    return hex(sha256({reinterpret_cast<const std::uint8_t*>(s.data()), s.size()}));
  };
  // FIPS 180-4 example messages and the empty string.
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameDigest) {
  RandomStream random(7, Stream::kTest);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(random.next());
  const auto whole = sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  for (int trial = 0; trial < 50; ++trial) {
    Sha256 pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = std::min<std::size_t>(random.below(150), text.size() - at);
      pieces.update(text.data() + at, n);
      at += n;
    }
    EXPECT_EQ(pieces.finish(), whole);
  }
}

void check_key_case(const Json& c) {
  std::string name = c.at("algorithm");
  name = name.substr(0, name.find(' '));
  const auto algorithm = parse_key_algorithm(name);
  ASSERT_TRUE(algorithm) << name;
  const auto tokens = c.at("tokens").get<std::vector<std::uint32_t>>();
  const BlockKeyChain chain(*algorithm, c.at("block_size").get<std::uint32_t>(),
                            c.at("hash_seed").get<std::string>(), c.value("model", ""));
  const std::uint64_t parent = c.contains("parent") ? u64(c["parent"]) : 0;
  const auto extras = extras_of(test::member(c, "extra_hashes_per_block"));
  const auto expected = u64_list(c.at("expected_keys"));

  std::vector<BlockKey> keys = {42};
  EXPECT_EQ(chain.append_keys(parent, tokens, keys, extras), expected.size());
  ASSERT_EQ(keys.size(), expected.size() + 1);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), keys.begin() + 1));
  EXPECT_EQ(keys[0], 42u) << "append_keys must append";

  if (c.contains("root")) {
    EXPECT_EQ(chain.root(), u64(c["root"]));
  }
  if (c.contains("init_hash")) {
    const std::string seed = c["hash_seed"];
    EXPECT_EQ(*algorithm == KeyAlgorithm::kXxh64 ? xxh64(seed) : fnv1a64(seed),
              u64(c["init_hash"]));
  }
  if (c.contains("root_hex")) {
    const std::string root = hex(chain.start().digest);
    const std::string want = c["root_hex"];
    EXPECT_EQ(root.substr(root.size() - want.size()), want);
  }
  // One block at a time gives the same chain.
  ChainState state = chain.start();
  if (parent != 0) state.key = parent;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    chain.extend(state, std::span(tokens).subspan(i * chain.block_size(), chain.block_size()),
                 i < extras.size() ? extras[i] : BlockExtra{});
    EXPECT_EQ(state.key, expected[i]) << "block " << i;
  }
}

// tokenProcessorConfig as the precise plugins read it.
void check_config_case(const Json& c) {
  PluginBench bench("precise-prefix-cache-scorer", {{"tokenProcessorConfig", c.at("config")}}, 0);
  ASSERT_EQ(bench.built(), !c.contains("expected_error")) << bench.errors();
  if (!bench.built()) return;
  const BlockKeyScheme scheme = bench.scheduler().block_key_scheme();
  if (c.contains("expected_block_size")) {
    EXPECT_EQ(scheme.block_size, c["expected_block_size"].get<std::int64_t>());
  }
  EXPECT_EQ(scheme.hash_seed, c["config"].value("hashSeed", ""));
  if (!c.contains("num_tokens")) return;
  const BlockKeyChain chain(scheme.algorithm, static_cast<std::uint32_t>(scheme.block_size),
                            scheme.hash_seed, "m");
  std::vector<BlockKey> keys;
  chain.append_keys(BlockKey{0}, test::counting_tokens(c["num_tokens"].get<std::size_t>()), keys);
  EXPECT_EQ(keys.size(), c.at("expected_key_count").get<std::size_t>());
}

TEST(BlockKeys, Vectors) {
  for (const Json& c : vector_cases("block_keys")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    c.contains("config") ? check_config_case(c) : check_key_case(c);
  }
}

// The fast FNV path against CBOR bytes written out in full, over the whole range of token ids.
TEST(BlockKeys, FnvEqualsHashingTheCborBytes) {
  const auto head = [](std::string& out, int major, std::uint64_t v) {
    const auto put = [&](int info, int bytes) {
      out += static_cast<char>(major << 5 | info);
      for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(v >> (8 * i));
    };
    v < 24            ? put(static_cast<int>(v), 0)
    : v < 256         ? put(24, 1)
    : v < 65536       ? put(25, 2)
    : v <= 0xffffffff ? put(26, 4)
                      : put(27, 8);
  };
  RandomStream random(11, Stream::kTest);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::uint32_t> tokens(1 + random.below(70));
    for (auto& t : tokens) t = static_cast<std::uint32_t>(random.next() >> (32 + random.below(32)));
    if (trial < 64) tokens[0] = trial < 32 ? 1u << trial : (1u << (trial - 32)) - 1;
    const std::uint64_t parent = 1 + (random.next() >> random.below(63));
    std::string cbor = "\x83";
    head(cbor, 0, parent);
    head(cbor, 4, tokens.size());
    for (const std::uint32_t t : tokens) head(cbor, 0, t);
    cbor += '\xf6';
    const BlockKeyChain chain(KeyAlgorithm::kCborFnv, static_cast<std::uint32_t>(tokens.size()), "",
                              "m");
    ASSERT_EQ(chain.extend(parent, tokens), fnv1a64(cbor)) << "trial " << trial;
  }
}

TEST(BlockKeys, ShaErasScopeKeysByModel) {
  const BlockKeyChain a(KeyAlgorithm::kSha256Cbor, 16, "", "model-a");
  const BlockKeyChain b(KeyAlgorithm::kSha256Cbor, 16, "", "model-b");
  const auto tokens = test::counting_tokens(16);
  EXPECT_EQ(a.extend(0, tokens), b.extend(0, tokens)) << "the model is not hashed";
  EXPECT_NE(a.index_key(7), b.index_key(7));
  const BlockKeyChain fnv(KeyAlgorithm::kCborFnv, 16, "", "model-a");
  EXPECT_EQ(fnv.index_key(7), 7u);
}

// Computed apart from this code: SHA-256 of the CBOR array [parent, token ids, texts or null],
// where the parent is the root's digest (its last 64 bits in the 64-bit variant).
TEST(BlockKeys, ShaErasHashExtrasAsTexts) {
  using Keys = std::pair<BlockKey, BlockKey>;
  std::vector<std::uint32_t> tokens(16);
  std::iota(tokens.begin(), tokens.end(), 100U);
  const auto keys = [&](KeyAlgorithm algorithm) {
    const BlockKeyChain chain(algorithm, 16, "0", "m");
    ChainState state = chain.start();
    chain.extend(state, tokens, {"img-1", "salt"});
    const BlockKey first = state.key;
    chain.extend(state, tokens);
    return Keys(first, state.key);
  };
  EXPECT_EQ(keys(KeyAlgorithm::kSha256Cbor), Keys(0xd775a5a1404dcb2f, 0x2338892bc00d61ba));
  EXPECT_EQ(keys(KeyAlgorithm::kSha256Cbor64), Keys(0x9701b9e309bb1868, 0x29ed77d3bc1f020d));
}

std::vector<MultimodalItem> items_of(const Json& c) {
  std::vector<MultimodalItem> items;
  for (const auto& [kind, ranges] : c.at("ranges").items())
    for (std::size_t i = 0; i < ranges.size(); ++i)
      items.push_back(
          {.identifier = c["hashes"][kind][i], .offset = ranges[i][0], .length = ranges[i][1]});
  return items;
}

TEST(BlockKeys, ExtraFeatureVectors) {
  for (const Json& c : vector_cases("block_extra_features")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const std::string fn = c.at("fn");
    if (fn == "compute_block_extra") {
      EXPECT_EQ(compute_block_extras(items_of(c), c["block_size"], c["num_tokens"]),
                extras_of(c["expected"]));
    } else if (fn == "realign") {
      EXPECT_EQ(realign_extras(extras_of(c["engine"]), c["canonical_count"]),
                extras_of(c["expected"]));
    } else if (fn == "mm_block_indices") {
      std::vector<MultimodalItem> items;
      for (const Json& f : c["features"]) items.push_back({"id", f[0], f[1]});
      EXPECT_EQ(multimodal_blocks(items, c["block_size"]),
                c["expected"].get<std::vector<std::int64_t>>());
    } else if (fn == "count_mm_matched") {
      EXPECT_EQ(
          count_matched_blocks(c["mm_blocks"].get<std::vector<std::int64_t>>(), c["match_len"]),
          c["expected"].get<std::int64_t>());
    } else {
      // parse_raw happens while decoding: kv_events_test.cpp runs it.
      EXPECT_EQ(fn, "parse_raw");
    }
  }
}

TEST(BlockKeys, CacheSaltJoinsBlockZeroAfterImages) {
  const std::vector<MultimodalItem> items = {{"late", 20, 4}, {"early", 4, 4}};
  const auto extras = compute_block_extras(items, 16, 40, "salt");
  EXPECT_EQ(extras, (std::vector<BlockExtra>{{"early", "salt"}, {"late"}}));
  EXPECT_TRUE(compute_block_extras(items, 16, 15, "salt").empty()) << "no full block, no salt";
}

TEST(BlockKeys, ApproximateHashVectors) {
  for (const Json& c : vector_cases("approx_prefix_hashes")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const std::string variant = c.at("variant");
    const auto size = c.value("block_size", 0u);
    if (variant == "tokens") {
      EXPECT_EQ(approx_hashes_tokens(c["tokens"].get<std::vector<std::uint32_t>>(),
                                     c["model"].get<std::string>(),
                                     c["cache_salt"].get<std::string>(), size),
                u64_list(c["expected_hashes"]));
    } else if (variant == "estimate") {
      const auto tokens = estimate_tokens(c["text"].get<std::string>());
      EXPECT_EQ(tokens, c["expected_tokens"].get<std::vector<std::uint32_t>>());
      EXPECT_EQ(tokens.size(), c["expected_count"].get<std::size_t>());
    } else if (variant == "bytes" || variant == "bytes_partial") {
      EXPECT_EQ(
          approx_hashes_bytes(c["text"].get<std::string>(), c["model"].get<std::string>(),
                              c["cache_salt"].get<std::string>(), size, variant == "bytes_partial"),
          u64_list(c["expected_hashes"]));
    } else if (variant == "count") {
      EXPECT_EQ(
          approx_hashes_tokens(c["tokens"].get<std::vector<std::uint32_t>>(), "", "", size).size(),
          c["expected_blocks"].get<std::size_t>());
    } else if (variant == "count_multi") {
      for (std::size_t i = 0; i < c["prompts"].size(); ++i)
        EXPECT_EQ(
            approx_hashes_tokens(c["prompts"][i].get<std::vector<std::uint32_t>>(), "", "", size)
                .size(),
            c["expected_blocks_per_prompt"][i].get<std::size_t>());
    } else {
      ADD_FAILURE() << "unknown variant " << variant;
    }
  }
}

TEST(BlockKeys, ChainsSideBySideEqualChainsOneByOne) {
  RandomStream random(9, Stream::kTest);
  const std::vector<std::uint32_t> odd = {0,        23, 24, 255, 256, 65535, 65536, (1u << 24) - 1,
                                          1u << 24, ~0u};
  for (const KeyAlgorithm algorithm : {KeyAlgorithm::kCborFnv, KeyAlgorithm::kXxh64,
                                       KeyAlgorithm::kSha256Cbor, KeyAlgorithm::kSha256Cbor64}) {
    const BlockKeyChain chain(algorithm, 8, "", "m");
    for (int round = 0; round < 100; ++round) {
      const std::size_t lanes = random.below(BlockKeyChain::kLanes + 2);
      std::vector<std::vector<std::uint32_t>> tokens(lanes);
      std::vector<ChainState> states(lanes, chain.start());
      std::vector<std::vector<BlockKey>> keys(lanes, {42});
      std::vector<BlockKeyChain::Lane> all;
      for (std::size_t i = 0; i < lanes; ++i) {
        tokens[i].resize(random.below(60));
        for (std::uint32_t& t : tokens[i])
          t = random.below(4) == 0 ? odd[random.below(odd.size())]
                                   : static_cast<std::uint32_t>(random.below(128'000));
        all.push_back({.state = &states[i], .tokens = tokens[i], .out = &keys[i]});
      }
      chain.append_keys(all);
      for (std::size_t i = 0; i < lanes; ++i) {
        ChainState state = chain.start();
        std::vector<BlockKey> expected = {42};
        chain.append_keys(state, tokens[i], expected);
        ASSERT_EQ(keys[i], expected) << to_string(algorithm) << " lane " << i << " of " << lanes;
        ASSERT_EQ(states[i].key, state.key);
        ASSERT_EQ(states[i].digest, state.digest);
      }
    }
  }
}

TEST(BlockKeys, ApproximateHashLimits) {
  EXPECT_EQ(effective_approx_block(16), 64u);
  EXPECT_EQ(effective_approx_block(128), 128u);
  EXPECT_EQ(approx_hashes_tokens(test::counting_tokens(10), "m", "", 2, 3).size(), 3u);
  EXPECT_TRUE(approx_hashes_bytes("short", "m", "", 16, true).empty())
      << "texts below one chunk have no hashes, tail or not";
}

}  // namespace
}  // namespace routesim::policies
