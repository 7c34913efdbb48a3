#include "policies/kv_events/kv_events.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/index/tier_registry.h"
#include "policies/kv_events/kv_msgpack.h"
#include "tests/policies/kv_encode.h"
#include "tests/policies/vector_file.h"

namespace routesim::policies {
namespace {

using test::Json;
using test::member;
using test::vector_cases;

// ---- Vectors as bytes
// -------------------------------------------------------------------------------

// Writes a JSON value as an engine would: block hashes and parents in the 64-bit format.
void write_value(MsgWriter& out, const Json& v, bool wide) {
  if (v.is_null()) return out.nil();
  if (v.is_string()) return out.text(v.get<std::string>());
  if (v.is_number_float()) return out.real(v.get<double>());
  if (v.is_number())
    return wide ? out.uint64(v.get<std::uint64_t>()) : out.integer(v.get<std::int64_t>());
  if (v.is_array()) {
    out.array(v.size());
    for (const Json& item : v) write_value(out, item, wide);
    return;
  }
  out.map(v.size());
  for (const auto& [key, item] : v.items()) {
    out.text(key);
    write_value(out, item, key == "block_hashes" || key == "parent_block_hash");
  }
}

std::vector<std::uint8_t> event_bytes(const Json& event) {
  MsgWriter out;
  if (!event.is_array()) {
    write_value(out, event, false);
    return out.take();
  }
  out.array(event.size());
  const bool stored = !event.empty() && event[0] == "BlockStored";
  for (std::size_t i = 0; i < event.size(); ++i)
    write_value(out, event[i], i == 1 || (stored && i == 2));
  return out.take();
}

template <class T>
Json or_null(const std::optional<T>& v) {
  return v ? Json(*v) : Json();
}

Json extra_json(const std::optional<std::vector<BlockExtra>>& extra) {
  if (!extra) return {};
  Json out = Json::array();
  for (const BlockExtra& block : *extra) out.push_back(block.empty() ? Json() : Json(block));
  return out;
}

Json describe_event(const KvEvent& event) {
  if (const auto* s = std::get_if<BlockStored>(&event))
    return {{"hashes", s->hashes},
            {"parent", s->parent},
            {"tokens", s->tokens},
            {"block_size", s->block_size},
            {"tier", s->medium},
            {"lora_id", or_null(s->lora_id)},
            {"lora_name", or_null(s->lora_name)},
            {"extra_keys", extra_json(s->extra_keys)},
            {"group_idx", or_null(s->group_idx)},
            {"spec_kind", or_null(s->kv_cache_spec_kind)},
            {"sliding_window", or_null(s->sliding_window)}};
  if (const auto* r = std::get_if<BlockRemoved>(&event))
    return {{"hashes", r->hashes}, {"tier", r->medium}, {"group_idx", or_null(r->group_idx)}};
  return Json::object();
}

void run_decode(const Json& c) {
  KvEvent event;
  const std::string error = decode_kv_event(event_bytes(c["event"]), event);
  if (c.contains("expected_error")) {
    EXPECT_FALSE(error.empty());
    if (c["expected_error"].is_string()) {
      EXPECT_NE(error.find(c["expected_error"].get<std::string>()), std::string::npos) << error;
    }
    return;
  }
  ASSERT_EQ(error, "");
  const Json got = describe_event(event);
  for (const auto& [field, value] : c["expected"].items()) EXPECT_EQ(got.at(field), value) << field;
  if (c["expected"].empty()) {
    EXPECT_TRUE(std::holds_alternative<AllBlocksCleared>(event));
  }
}

void run_hash(const Json& c) {
  MsgWriter out;
  if (c.contains("hex")) {
    std::vector<std::uint8_t> bytes;
    const std::string text = c["hex"];
    for (std::size_t i = 0; i < text.size(); i += 2)
      bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
    out.bytes(bytes);
  } else if (c["type"] == "string") {
    out.text(c["value"].get<std::string>());
  } else {
    out.uint64(c["value"].get<std::uint64_t>());
  }
  auto bytes = out.take();
  if (c.value("type", "") == "int64") bytes[0] = 0xd3;
  std::uint64_t hash = 0;
  const std::string error = decode_kv_hash(bytes, hash);
  EXPECT_EQ(!error.empty(), c.value("expected_error", false)) << error;
  if (error.empty()) {
    EXPECT_EQ(std::to_string(hash), c["expected"].get<std::string>());
  }
}

TEST(KvEvents, WireVectors) {
  int run = 0;
  for (const Json& c : vector_cases("kv_events")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const std::string fn = c.at("fn");
    ++run;
    if (fn == "parse_topic") {
      const std::string text = c["topic"];
      const KvTopic topic = parse_kv_topic(text);
      EXPECT_EQ(topic.pod, c["expected"][0].get<std::string>());
      EXPECT_EQ(topic.model, c["expected"][1].get<std::string>());
    } else if (fn == "hash") {
      run_hash(c);
    } else if (fn == "decode") {
      run_decode(c);
    } else if (fn == "shard") {
      const std::string key = c["key"];
      EXPECT_EQ(fnv1a32(key), c["fnv1a32"].get<std::uint32_t>());
      EXPECT_EQ(kv_worker(key, 4), c["expected_worker_of_4"].get<std::uint32_t>());
      EXPECT_EQ(kv_worker(key, 16), c["expected_worker_of_16"].get<std::uint32_t>());
    } else if (fn == "subscriber_endpoint") {
      EXPECT_EQ(kv_subscriber_endpoint(c["address"].get<std::string>(), c["socket_port"],
                                       c["rank_index"]),
                c["expected"].get<std::string>());
    } else {
      --run;  // Processing, not wire format: kv_ingest_test.cpp runs these and refuses unknown
              // ones.
    }
  }
  EXPECT_EQ(run, 34);
}

TEST(KvEvents, RawExtraKeyVectors) {
  for (const Json& c : vector_cases("block_extra_features")) {
    if (c["fn"] != "parse_raw") continue;
    SCOPED_TRACE(c.at("name").get<std::string>());
    KvEvent event;
    ASSERT_EQ(decode_kv_event(event_bytes(Json::array({"BlockStored", Json::array({1}), nullptr,
                                                       Json::array({1}), 16, nullptr, nullptr,
                                                       nullptr, c["raw"]})),
                              event),
              "");
    EXPECT_EQ(extra_json(std::get<BlockStored>(event).extra_keys), c["expected"]);
  }
}

// ---- Round trips
// ------------------------------------------------------------------------------------

KvEventBatch random_batch(RandomStream& random) {
  const auto maybe = [&random] { return random.below(2) == 0; };
  KvEventBatch batch;
  batch.timestamp = random.uniform() * 1e9;
  if (maybe()) batch.data_parallel_rank = static_cast<std::int64_t>(random.below(300));
  for (std::uint64_t n = random.below(6); n > 0; --n) {
    const std::uint64_t kind = random.below(3);
    if (kind == 0) {
      BlockStored e;
      for (std::uint64_t i = random.below(40); i > 0; --i) e.hashes.push_back(random.next());
      if (maybe()) e.parent = random.next() | 1;
      for (std::uint64_t i = random.below(300); i > 0; --i)
        e.tokens.push_back(static_cast<std::uint32_t>(random.next() >> (32 + random.below(32))));
      e.block_size = static_cast<std::int64_t>(random.below(70000));
      if (maybe()) e.lora_id = -static_cast<std::int64_t>(random.next() >> random.below(64) >> 1);
      if (maybe()) e.medium = "GPU";
      if (maybe()) e.lora_name = std::string(random.below(300), 'l');
      if (maybe())
        e.extra_keys = std::vector<BlockExtra>{{}, {"a", "b"}, {std::string(70000, 'x')}};
      if (maybe()) e.group_idx = static_cast<std::uint32_t>(random.below(1 << 20));
      if (maybe()) e.kv_cache_spec_kind = "full_attention";
      if (maybe()) e.sliding_window = 128;
      batch.events.emplace_back(std::move(e));
    } else if (kind == 1) {
      BlockRemoved e;
      for (std::uint64_t i = random.below(20); i > 0; --i) e.hashes.push_back(random.next());
      if (maybe()) e.medium = "cpu";
      if (maybe()) e.group_idx = 3;
      batch.events.emplace_back(std::move(e));
    } else {
      batch.events.emplace_back(AllBlocksCleared{});
    }
  }
  return batch;
}

// llm-d-kv-cache v0.8.1 decodes a batch into a struct of three fields, by position.
TEST(KvEvents, ABatchHasThreeElements) {
  KvEventBatch batch;
  batch.events = {AllBlocksCleared{}};
  std::vector<std::uint8_t> bytes = encode_kv_batch(batch);
  EXPECT_EQ(bytes.front(), 0x93) << "vLLM sends the rank always";
  EXPECT_EQ(bytes.back(), 0xc0) << "as nil without one";
  EXPECT_EQ(decode_kv_batch(bytes, batch), "");
  EXPECT_FALSE(batch.data_parallel_rank);
  bytes.front() = 0x92;
  bytes.pop_back();
  EXPECT_EQ(decode_kv_batch(bytes, batch),
            "a batch is an array of three, [timestamp, events, rank]");
  bytes = encode_kv_batch(batch);
  bytes.front() = 0x94;
  bytes.push_back(0xc0);
  EXPECT_NE(decode_kv_batch(bytes, batch), "");
}

TEST(KvEvents, EncodedBatchesDecodeToThemselves) {
  RandomStream random(21, Stream::kTest);
  for (int i = 0; i < 300; ++i) {
    const KvEventBatch batch = random_batch(random);
    for (const auto encoding : {KvEncoding::kArray, KvEncoding::kMap}) {
      KvEventBatch decoded;
      ASSERT_EQ(decode_kv_batch(encode_kv_batch(batch, encoding), decoded), "") << "batch " << i;
      ASSERT_EQ(decoded, batch) << "batch " << i;
    }
  }
}

// ---- Hostile bytes
// ----------------------------------------------------------------------------------

TEST(KvEvents, EveryTruncationIsRefused) {
  RandomStream random(22, Stream::kTest);
  for (int i = 0; i < 20; ++i) {
    auto batch = random_batch(random);
    for (auto& e : batch.events)
      if (auto* s = std::get_if<BlockStored>(&e)) s->extra_keys.reset();  // Keeps the bytes few.
    const auto bytes = encode_kv_batch(batch, i % 2 == 0 ? KvEncoding::kArray : KvEncoding::kMap);
    KvEventBatch out;
    for (std::size_t n = 0; n < bytes.size(); ++n)
      ASSERT_NE(decode_kv_batch(std::span(bytes).first(n), out), "") << "first " << n << " bytes";
    auto longer = bytes;
    longer.push_back(0xc0);
    EXPECT_EQ(decode_kv_batch(longer, out), "trailing bytes");
  }
}

TEST(KvEvents, DamagedBytesNeverDoHarm) {
  RandomStream random(23, Stream::kTest);
  int refused = 0;
  for (int i = 0; i < 30000; ++i) {
    auto batch = random_batch(random);
    if (batch.events.size() > 2) batch.events.resize(2);
    for (auto& e : batch.events)
      if (auto* s = std::get_if<BlockStored>(&e))
        s->extra_keys = std::vector<BlockExtra>{{"a"}, {}};
    auto bytes = encode_kv_batch(batch);
    for (std::uint64_t n = 1 + random.below(4); n > 0; --n)
      bytes[random.below(bytes.size())] = static_cast<std::uint8_t>(random.next());
    KvEventBatch out;
    if (!decode_kv_batch(bytes, out).empty()) {
      ++refused;
      continue;
    }
    // Whatever was accepted is a proper batch: it survives a round trip.
    KvEventBatch again;
    ASSERT_EQ(decode_kv_batch(encode_kv_batch(out), again), "");
  }
  EXPECT_GT(refused, 3000);
  for (int i = 0; i < 30000; ++i) {  // Noise.
    std::vector<std::uint8_t> bytes(random.below(64));
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random.next());
    KvEventBatch out;
    decode_kv_batch(bytes, out);
  }
}

TEST(KvEvents, HugeCountsCostNothing) {
  KvEventBatch out;
  // [1.0, <array of 2^32 - 1 events>, …]: five bytes that promise gigabytes.
  const std::vector<std::uint8_t> events = {0x93, 0xca, 0x3f, 0x80, 0, 0, 0xdd, 255, 255, 255, 255};
  EXPECT_EQ(decode_kv_batch(events, out), "truncated");
  // The same for hashes and for a string.
  for (const std::vector<std::uint8_t>& tail :
       {std::vector<std::uint8_t>{0xdd, 255, 255, 255, 255},
        std::vector<std::uint8_t>{0xdb, 255, 255, 255, 255},
        std::vector<std::uint8_t>{0xdf, 255, 255, 255, 255}}) {
    MsgWriter w;
    w.array(2);
    w.text("BlockRemoved");
    auto bytes = w.take();
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    KvEvent event;
    EXPECT_EQ(decode_kv_event(bytes, event), "truncated");
  }
  EXPECT_EQ(decode_kv_batch(std::vector<std::uint8_t>(100), out, {.max_bytes = 99}),
            "payload too large");
}

TEST(KvEvents, DeepNestingIsRefused) {
  MsgWriter w;
  w.array(3);
  w.text("BlockRemoved");
  w.array(0);
  auto bytes = w.take();
  bytes[0] = 0x95;  // An unknown fifth field: 100,000 arrays inside each other.
  bytes.insert(bytes.end(), {0xc0, 0xc0});
  bytes.insert(bytes.end(), 100000, 0x91);
  bytes.push_back(0xc0);
  KvEvent event;
  EXPECT_EQ(decode_kv_event(bytes, event), "nested too deeply");
}

TEST(KvEvents, NarrowIntegersAreNotHashes) {
  for (const std::int64_t v : {0L, 100L, 200L, 40000L, 3000000000L, -1L, -100L}) {
    MsgWriter w;
    w.integer(v);
    std::uint64_t hash = 0;
    EXPECT_NE(decode_kv_hash(w.take(), hash), "") << v;
  }
}

TEST(KvEvents, OneBadEventDiscardsTheMessage) {
  MsgWriter w;
  w.array(3);
  w.real(1);
  w.array(2);
  w.array(1);
  w.text("AllBlocksCleared");
  w.array(1);
  w.text("SomethingNew");
  KvEventBatch out;
  EXPECT_NE(decode_kv_batch(w.take(), out).find("unknown vLLM event tag"), std::string::npos);
}

// ---- Transport
// --------------------------------------------------------------------------------------

TEST(KvEvents, SequenceFrames) {
  const auto frame = encode_kv_sequence(0x0102030405060708);
  EXPECT_EQ(frame[0], 1);
  EXPECT_EQ(parse_kv_sequence(frame), 0x0102030405060708u);
  EXPECT_FALSE(parse_kv_sequence(std::span(frame).first(7)));
}

TEST(KvEvents, SequenceGaps) {
  SequenceTracker with(true);
  EXPECT_EQ(with.observe(5).action, SequenceAction::kDeliver);
  EXPECT_EQ(with.observe(6).action, SequenceAction::kDeliver);
  const auto gap = with.observe(9);
  EXPECT_EQ(gap.action, SequenceAction::kReplay);
  EXPECT_EQ(gap.replay_from, 7u);
  EXPECT_EQ(with.missed(), 2u);
  EXPECT_EQ(with.observe(0).action, SequenceAction::kClearAndReplay) << "the engine restarted";
  EXPECT_EQ(with.observe(1).action, SequenceAction::kDeliver);
  SequenceTracker without(false);
  without.observe(5);
  EXPECT_EQ(without.observe(9).action, SequenceAction::kDeliver);
  EXPECT_EQ(without.observe(2).action, SequenceAction::kDeliver);
  EXPECT_EQ(without.missed(), 3u);
}

constexpr auto kDeliver = SequenceAction::kDeliver;
constexpr auto kDrop = SequenceAction::kDrop;

SimTime second(std::int64_t n) { return SimTime::zero() + Duration::seconds(n); }

// llm-d-router v0.10.0 pkg/kvevents/zmq_subscriber.go, line by line.
TEST(KvEvents, SequenceGapsAreReplayed) {
  ReplayTracker t;
  t.on_replayed({});  // a new subscription asks, and nothing was published
  EXPECT_EQ(t.observe(0, second(0)).action, kDeliver);
  EXPECT_EQ(t.observe(1, second(0)).action, kDeliver);
  EXPECT_EQ(t.observe(1, second(0)).action, kDrop) << "the same again";
  const SequenceVerdict gap = t.observe(5, second(1));
  EXPECT_EQ(gap.action, SequenceAction::kReplay);
  EXPECT_EQ(gap.replay_from, 2u);
  t.on_replayed(6);
  EXPECT_EQ(t.observe(5, second(1), true).action, kDrop) << "the replay brought it";
  EXPECT_EQ(t.observe(6, second(1)).action, kDrop);
  EXPECT_EQ(t.observe(7, second(1)).action, kDeliver);
  EXPECT_EQ(t.observe(0, second(2)).action, SequenceAction::kClearAndReplay) << "a restart";
  t.on_replayed(0);
  EXPECT_EQ(t.observe(0, second(2), true).action, kDrop);
  EXPECT_EQ(t.observe(1, second(2)).action, kDeliver);
}

// A replay that fails is tried again after 30 s, and until then nothing is delivered: a full replay
// fails for good once the engine has forgotten its first batch.
TEST(KvEvents, WithoutAReplayNothingIsDelivered) {
  ReplayTracker t;
  t.on_replay_failed(second(0));
  EXPECT_EQ(t.observe(7, second(1)).action, kDrop);
  EXPECT_EQ(t.observe(8, second(29)).action, kDrop);
  const SequenceVerdict again = t.observe(9, second(30));
  EXPECT_EQ(again.action, SequenceAction::kReplay);
  EXPECT_EQ(again.replay_from, 0u);
  t.on_replay_failed(second(30));
  EXPECT_EQ(t.observe(9, second(30), true).action, kDrop);
  EXPECT_EQ(t.observe(10, second(31)).action, kDrop);
  // The engine starts again.
  EXPECT_EQ(t.observe(0, second(32)).action, SequenceAction::kClearAndReplay);
  t.on_replay_failed(second(32));
  EXPECT_EQ(t.observe(0, second(32), true).action, kDeliver) << "what comes first needs no replay";
  EXPECT_EQ(t.observe(1, second(32)).action, kDeliver);
  EXPECT_EQ(t.observe(3, second(33)).action, kDrop) << "too soon";
  EXPECT_EQ(t.observe(4, second(63)).replay_from, 2u);
}

TEST(KvEvents, TiersAreLowerCaseAndBounded) {
  TierRegistry tiers;
  EXPECT_EQ(tiers.intern_medium(""), kGpuTier);
  EXPECT_EQ(tiers.intern_medium("GPU"), kGpuTier);
  EXPECT_EQ(tiers.intern_medium("Cpu"), kCpuTier);
  EXPECT_EQ(tiers.intern(""), kNoTier);
  for (int i = 0; i < 1000; ++i) tiers.intern_medium(std::string("t").append(std::to_string(i)));
  EXPECT_EQ(tiers.size(), 128u);
  EXPECT_FALSE(tiers.intern_medium("one more"));
  EXPECT_EQ(tiers.intern_medium("t3"), 6);
}

}  // namespace
}  // namespace routesim::policies
