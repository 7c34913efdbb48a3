// From events to the index: the processing rules, and that the simulator's short cut and the wire
// path end in the same index.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/kv_events/kv_event_ingest.h"
#include "tests/policies/kv_encode.h"
#include "tests/policies/vector_file.h"

namespace routesim::policies {
namespace {

using test::counting_tokens;
using test::Json;
using test::u64_list;
using test::vector_cases;

constexpr EndpointId kPod(0);

struct Ingest {
  explicit Ingest(std::uint32_t block_size = 16, std::string seed = "",
                  KeyAlgorithm algorithm = KeyAlgorithm::kCborFnv)
      : options(make(block_size, std::move(seed), algorithm)), ingestor(options, index, tiers) {}
  static KvIngestOptions make(std::uint32_t block_size, std::string seed, KeyAlgorithm algorithm) {
    KvIngestOptions o;
    o.block_size = block_size;
    o.hash_seed = std::move(seed);
    o.algorithm = algorithm;
    return o;
  }
  std::vector<BlockKey> keys(std::span<const std::uint32_t> tokens, std::string_view model) const {
    const BlockKeyChain chain(options.algorithm, options.block_size, options.hash_seed, model);
    std::vector<BlockKey> out;
    chain.append_keys(BlockKey{0}, tokens, out);
    return out;
  }
  KvIngestOptions options;
  PrefixIndex index;
  TierRegistry tiers;
  KvEventIngestor ingestor;
};

BlockStored stored_event(std::vector<std::uint64_t> hashes, std::size_t num_tokens) {
  BlockStored e;
  e.hashes = std::move(hashes);
  e.tokens = counting_tokens(num_tokens);
  e.block_size = e.hashes.empty() ? 16 : static_cast<std::int64_t>(num_tokens / e.hashes.size());
  return e;
}

BlockRemoved removed_event(std::vector<std::uint64_t> hashes, std::string medium = "") {
  BlockRemoved e;
  e.hashes = std::move(hashes);
  e.medium = std::move(medium);
  return e;
}

void run_ingest(const Json& c) {
  Ingest s(c["canonical_block"], c["hash_seed"]);
  const auto engine = u64_list(c["engine_keys"]);
  const auto request = u64_list(c["expected_request_keys"]);
  const std::string model = c["model"];
  s.ingestor.apply(kPod, model, stored_event(engine, c["num_tokens"].get<std::size_t>()));
  EXPECT_EQ(s.index.request_key_count(), request.size());
  for (const BlockKey key : request) EXPECT_EQ(s.index.holders(key).size(), 1u) << key;
  const Json& last = test::member(c, "expected_engine_to_index").is_null()
                         ? c.at("expected_engine_resolves_to_last")
                         : c["expected_engine_to_index"];
  for (std::size_t i = 0; i < engine.size(); ++i)
    EXPECT_EQ(s.index.resolve_engine_key(engine[i]), request[last[i].get<std::size_t>()]);
  if (!c.contains("evict_engine")) return;
  s.ingestor.apply(kPod, model, removed_event({c["evict_engine"].get<std::uint64_t>()}));
  std::vector<std::size_t> remaining;
  for (std::size_t i = 0; i < request.size(); ++i)
    if (!s.index.holders(request[i]).empty()) remaining.push_back(i);
  EXPECT_EQ(remaining, c["expected_remaining_indices"].get<std::vector<std::size_t>>());
}

void run_ingest_two(const Json& c) {
  Ingest s(c["canonical_block"]);
  std::uint64_t hash = 1000;
  std::uint32_t pod = 0;
  const std::size_t tokens = c["num_tokens"];
  for (const auto& [name, blocks] : c["pods"].items()) {
    std::vector<std::uint64_t> hashes;
    for (int i = 0; i < blocks.get<int>(); ++i) hashes.push_back(++hash);
    s.ingestor.apply(EndpointId(pod++), "m", stored_event(hashes, tokens));
  }
  for (const BlockKey key : s.keys(counting_tokens(tokens), "m"))
    EXPECT_EQ(s.index.holders(key).size(), c["expected_holders_per_key"].size());
}

// [op, pod, tier, group, hashes]: what of a removal reaches the index.
void run_dedup(const Json& c) {
  PrefixIndex index;
  TierRegistry tiers;
  std::map<std::string, EndpointId> pods;
  std::size_t removal = 0;
  for (const Json& op : c["ops"]) {
    const auto e = pods.emplace(op[1], EndpointId(pods.size())).first->second;
    const TierId tier = *tiers.intern_medium(op[2].get<std::string>());
    std::optional<std::uint32_t> group;
    if (op[3].get<int>() >= 0) group = op[3].get<std::uint32_t>();
    const auto hashes = u64_list(op[4]);
    if (op[0] == "store") {
      index.stored(e, tier, 0, hashes, hashes, true, group);
      continue;
    }
    const HolderEntry row{.endpoint = e, .tier = tier, .speculative = false, .group = group};
    const auto has = [&](std::uint64_t h) {
      const auto rows = index.holders(h);
      return std::find(rows.begin(), rows.end(), row) != rows.end();
    };
    const auto forwarded = u64_list(c["expected_forwarded"][removal++]);
    std::vector<bool> held;
    for (const std::uint64_t h : hashes) held.push_back(has(h));
    index.removed(e, tier, hashes, group);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const bool expect_gone =
          std::find(forwarded.begin(), forwarded.end(), hashes[i]) != forwarded.end();
      EXPECT_EQ(has(hashes[i]), held[i] && !expect_gone) << "hash " << hashes[i];
    }
  }
  EXPECT_EQ(removal, c["expected_forwarded"].size());
}

void run_group_kind(const Json& c) {
  Ingest s;
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < c["num_hashes"].get<std::uint64_t>(); ++i)
    hashes.push_back(100 + i);
  BlockStored e = stored_event(hashes, c["num_tokens"].get<std::size_t>());
  e.block_size = c["block_size"];
  e.group_idx = c["group_idx"].get<std::uint32_t>();
  e.kv_cache_spec_kind = c["spec_kind"].get<std::string>();
  s.ingestor.apply(kPod, "m", e);
  EXPECT_EQ(s.index.request_key_count() > 0, c["expected_indexed"].get<bool>());
}

void run_small_case(const Json& c, const std::string& fn) {
  Ingest s(c.value("canonical_block", 16u));
  if (fn == "offload") {
    BlockStored offload;
    offload.hashes = {1, 2};
    offload.block_size = 16;
    offload.medium = "CPU";
    s.ingestor.apply(kPod, "m", offload);
    EXPECT_EQ(s.index.request_key_count(), c["expected_tiers"].size());
  } else if (fn == "ingest_partial") {
    s.ingestor.apply(kPod, "m", stored_event({1, 2}, c["num_tokens"].get<std::size_t>()));
    EXPECT_EQ(s.index.request_key_count() > 0, c["expected_added"].get<bool>());
    EXPECT_EQ(s.index.engine_key_count(), 0u);
    EXPECT_EQ(s.ingestor.stats().skipped_partial, 1u);
  } else {
    ASSERT_EQ(fn, "clear");
    s.ingestor.apply(kPod, "m", stored_event({1, 2}, 32));
    ASSERT_EQ(s.index.request_key_count(), 2u);
    s.ingestor.apply(kPod, "m", AllBlocksCleared{});
    EXPECT_EQ(s.index.request_key_count(), c["expected_entries_of_pod"].get<std::size_t>());
  }
}

TEST(KvIngest, ProcessingVectors) {
  int run = 0;
  for (const Json& c : vector_cases("kv_events")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const std::string fn = c.at("fn");
    if (fn == "parse_topic" || fn == "hash" || fn == "decode" || fn == "shard" ||
        fn == "subscriber_endpoint")
      continue;  // The wire format: kv_events_test.cpp.
    ++run;
    if (fn == "ingest")
      run_ingest(c);
    else if (fn == "ingest_two")
      run_ingest_two(c);
    else if (fn == "dedup")
      run_dedup(c);
    else if (fn == "group_kind")
      run_group_kind(c);
    else
      run_small_case(c, fn);
  }
  EXPECT_EQ(run, 19);
}

// ---- Rules the vectors do not show
// ------------------------------------------------------------------

TEST(KvIngest, TierUpdateAddsARowOnTheLastRequestKey) {
  Ingest s(16);
  s.ingestor.apply(kPod, "m", stored_event({500, 501}, 64));  // 32-token engine blocks: 1:2.
  BlockStored offload;
  offload.hashes = {500};
  offload.block_size = 32;
  offload.medium = "CPU";
  s.ingestor.apply(kPod, "m", offload);
  const auto keys = s.keys(counting_tokens(64), "m");
  EXPECT_EQ(s.index.holders(keys[0]).size(), 1u);
  EXPECT_EQ(s.index.holders(keys[1]).size(), 2u);
  EXPECT_EQ(s.ingestor.stats().tier_updates, 1u);
}

TEST(KvIngest, ChainsContinueFromTheParentsLastKey) {
  Ingest s(16);
  const auto all = counting_tokens(96);
  BlockStored first = stored_event({1, 2}, 64);
  BlockStored second;
  second.hashes = {3};
  second.parent = 2;
  second.tokens.assign(all.begin() + 64, all.end());
  second.block_size = 32;
  s.ingestor.apply(kPod, "m", second);
  EXPECT_EQ(s.ingestor.stats().skipped_parent, 1u);
  EXPECT_EQ(s.index.request_key_count(), 0u);
  s.ingestor.apply(kPod, "m", first);
  s.ingestor.apply(kPod, "m", second);
  MatchScratch scratch;
  s.index.match(s.keys(all, "m"), scratch);
  ASSERT_EQ(scratch.matches().size(), 1u);
  EXPECT_EQ(scratch.matches()[0].blocks, 6u);
}

TEST(KvIngest, LoraNameReplacesTheModel) {
  Ingest s(16);
  BlockStored e = stored_event({1}, 16);
  e.lora_name = "adapter";
  s.ingestor.apply(kPod, "base", e);
  EXPECT_TRUE(s.index.holders(s.keys(counting_tokens(16), "base")[0]).empty());
  EXPECT_EQ(s.index.holders(s.keys(counting_tokens(16), "adapter")[0]).size(), 1u);
}

TEST(KvIngest, GroupKindsAreLearned) {
  Ingest s(16);
  BlockStored e = stored_event({1}, 16);
  e.group_idx = 2;
  s.ingestor.apply(kPod, "m", e);
  EXPECT_EQ(s.ingestor.stats().skipped_group, 1u) << "kind unknown so far";
  e.kv_cache_spec_kind = "full_attention";
  s.ingestor.apply(kPod, "m", e);
  e.kv_cache_spec_kind.reset();
  e.hashes = {2};
  s.ingestor.apply(kPod, "m", e);
  EXPECT_EQ(s.ingestor.stats().stored, 2u);
  BlockRemoved r = removed_event({1, 2});
  r.group_idx = 2;
  s.ingestor.apply(EndpointId(1), "m", r);
  EXPECT_EQ(s.ingestor.stats().skipped_group, 2u) << "kinds are per endpoint";
}

// A hostile engine cannot make the router remember groups without end.
TEST(KvIngest, GroupsAreBounded) {
  Ingest s(16);
  BlockStored e = stored_event({1}, 16);
  e.kv_cache_spec_kind = "full_attention";
  for (std::uint32_t group = 0; group < 2000; ++group) {
    e.group_idx = group;
    s.ingestor.apply(kPod, "m", e);
  }
  EXPECT_EQ(s.ingestor.stats().stored, 1024u);
  EXPECT_EQ(s.ingestor.stats().skipped_limit, 2000u - 1024u);
}

// One long identifier is not copied to, and hashed with, a hundred thousand blocks.
TEST(KvIngest, RepeatedExtraKeysAreBounded) {
  Ingest s(1);
  BlockStored e = stored_event({1}, 100'000);
  e.extra_keys = std::vector<BlockExtra>{{std::string(1'000'000, 'x')}};
  s.ingestor.apply(kPod, "m", e);
  EXPECT_EQ(s.ingestor.stats().skipped_limit, 1u);
  EXPECT_EQ(s.index.request_key_count(), 0u);
  e.extra_keys = std::vector<BlockExtra>{{std::string(64, 'x')}};
  s.ingestor.apply(kPod, "m", e);
  EXPECT_EQ(s.index.request_key_count(), 100'000u);
}

TEST(KvIngest, ShaErasIndexTheEnginesHashes) {
  Ingest s(16, "12345", KeyAlgorithm::kSha256Cbor);
  const auto tokens = counting_tokens(48);
  const BlockKeyChain chain(KeyAlgorithm::kSha256Cbor, 16, "12345", "m");
  std::vector<BlockKey> hashes;
  chain.append_keys(BlockKey{0}, tokens, hashes);
  BlockStored e;
  e.hashes = hashes;
  e.parent = 77;  // Ignored, like tokens and block size.
  e.block_size = 9999;
  s.ingestor.apply(kPod, "m", e);
  std::vector<BlockKey> keys;
  for (const BlockKey h : hashes) keys.push_back(chain.index_key(h));
  MatchScratch scratch;
  s.index.match(keys, scratch);
  ASSERT_EQ(scratch.matches().size(), 1u);
  EXPECT_EQ(scratch.matches()[0].blocks, 3u);
  s.ingestor.apply(kPod, "other model", removed_event(hashes));
  EXPECT_EQ(s.index.request_key_count(), 3u);
  s.ingestor.apply(kPod, "m", removed_event(hashes));
  EXPECT_EQ(s.index.request_key_count(), 0u);
}

// ---- The short cut
// ----------------------------------------------------------------------------------

void expect_same_index(const PrefixIndex& a, const PrefixIndex& b) {
  const auto order = a.keys_by_recency();
  ASSERT_EQ(order, b.keys_by_recency());
  ASSERT_EQ(a.engine_key_count(), b.engine_key_count());
  for (const BlockKey key : order) {
    ASSERT_EQ(a.holders(key), b.holders(key));
    ASSERT_EQ(a.request_keys_of(key), b.request_keys_of(key));
  }
}

// Four engines store and drop blocks of conversations. One index hears of it through msgpack
// messages with token ids, the other through stored() and removed() with precomputed keys, where
// the engine's hashes are the request keys themselves.
TEST(KvIngest, ShortCutAndWirePathGiveTheSameIndex) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, Stream::kTest);
    PrefixIndexOptions options;
    options.size = seed % 2 == 0 ? 60 : 100'000;
    options.pod_cache_size = seed % 3 == 0 ? 2 : 10;
    PrefixIndex wire(options);
    PrefixIndex direct(options);
    TierRegistry tiers;
    KvEventIngestor ingestor(Ingest::make(8, "s", KeyAlgorithm::kCborFnv), wire, tiers);
    const BlockKeyChain chain(KeyAlgorithm::kCborFnv, 8, "s", "m");
    std::vector<std::vector<std::uint32_t>> prompts;
    std::vector<std::vector<BlockKey>> keys;
    for (int p = 0; p < 12; ++p) {
      std::vector<std::uint32_t> tokens =
          p % 4 == 0 ? std::vector<std::uint32_t>{}
                     : std::vector(prompts[p - 1].begin(), prompts[p - 1].begin() + 40);
      while (tokens.size() < 100)
        tokens.push_back(static_cast<std::uint32_t>(random.below(150000)));
      prompts.push_back(tokens);
      chain.append_keys(BlockKey{0}, tokens, keys.emplace_back());
    }
    for (int step = 0; step < 1500; ++step) {
      const EndpointId e(random.below(4));
      const std::size_t p = random.below(prompts.size());
      const std::size_t first = random.below(12);
      const std::size_t count = 1 + random.below(12 - first);
      const std::span<const BlockKey> some = std::span(keys[p]).subspan(first, count);
      const bool cpu = random.below(4) == 0;
      const TierId tier = cpu ? kCpuTier : kGpuTier;
      KvEventBatch batch;
      if (random.below(50) == 0) {
        batch.events.emplace_back(AllBlocksCleared{});
        direct.cleared(e);
      } else if (random.below(2) == 0) {
        BlockStored event;
        event.hashes.assign(some.begin(), some.end());
        event.parent = first == 0 ? 0 : keys[p][first - 1];
        event.tokens.assign(prompts[p].begin() + static_cast<std::ptrdiff_t>(8 * first),
                            prompts[p].begin() + static_cast<std::ptrdiff_t>(8 * (first + count)));
        event.block_size = 8;
        event.medium = cpu ? "CPU" : "GPU";
        direct.stored(e, tier, event.parent, some, some);
        batch.events.emplace_back(std::move(event));
      } else {
        batch.events.emplace_back(removed_event({some.begin(), some.end()}, cpu ? "CPU" : "GPU"));
        direct.removed(e, tier, some);
      }
      const auto encoding = random.below(2) == 0 ? KvEncoding::kArray : KvEncoding::kMap;
      ASSERT_EQ(ingestor.apply_message(e, "m", encode_kv_batch(batch, encoding)), "");
      if (step % 25 == 0) expect_same_index(wire, direct);
      if (testing::Test::HasFatalFailure()) return;
    }
    expect_same_index(wire, direct);
    EXPECT_GT(wire.request_key_count(), 0u);
  }
}

}  // namespace
}  // namespace routesim::policies
