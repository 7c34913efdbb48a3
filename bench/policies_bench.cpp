// Speed of the routing library. Every benchmark checks its answer once before it measures.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "policies/balancers/balancers.h"
#include "policies/index/approx_prefix_index.h"
#include "policies/index/block_keys.h"
#include "policies/index/prefix_index.h"
#include "policies/kv_events/kv_event_ingest.h"
#include "policies/kv_events/kv_events.h"
#include "tests/policies/kv_encode.h"

namespace routesim::policies {
namespace {

constexpr std::size_t kPromptTokens = 7200;  // The llm-d prefix-caching workload: 6,000 + 1,200.
constexpr std::uint32_t kBlock = 64;
constexpr std::size_t kPromptKeys = 118;        // One more conversation turn.
constexpr std::uint32_t kVocabulary = 151'936;  // Qwen3.

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("benchmark answer is wrong: ") + what);
}

std::vector<std::uint32_t> random_tokens(RandomStream& random, std::size_t n) {
  std::vector<std::uint32_t> tokens(n);
  for (auto& t : tokens) t = static_cast<std::uint32_t>(random.below(kVocabulary));
  return tokens;
}

// ---- Keys
// -------------------------------------------------------------------------------------------

void key_prompt(benchmark::State& state, KeyAlgorithm algorithm) {
  RandomStream random(1, Stream::kTest);
  // Many prompts, so that the branch predictor cannot learn one by heart.
  std::vector<std::vector<std::uint32_t>> prompts;
  for (int i = 0; i < 64; ++i) prompts.push_back(random_tokens(random, kPromptTokens));
  const BlockKeyChain chain(algorithm, kBlock, "", "Qwen/Qwen3-32B");
  std::vector<BlockKey> keys;
  require(chain.append_keys(BlockKey{0}, prompts[0], keys) == kPromptTokens / kBlock, "key count");
  require(keys[0] == chain.extend(0, std::span(prompts[0]).first(kBlock)), "first key");
  std::size_t next = 0;
  for (auto _ : state) {
    keys.clear();
    chain.append_keys(BlockKey{0}, prompts[next++ % prompts.size()], keys);
    benchmark::DoNotOptimize(keys.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPromptTokens));
}
BENCHMARK_CAPTURE(key_prompt, cbor_fnv, KeyAlgorithm::kCborFnv)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(key_prompt, xxh64, KeyAlgorithm::kXxh64)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(key_prompt, sha256_cbor, KeyAlgorithm::kSha256Cbor)
    ->Unit(benchmark::kMicrosecond);

// ---- The precise index
// ------------------------------------------------------------------------------

/// Prompts in groups that share a prefix, as keys: `shared` keys of the group, then unique ones.
struct Prompts {
  Prompts(std::size_t groups, std::size_t per_group, std::size_t shared, std::size_t length) {
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t p = 0; p < per_group; ++p) {
        std::vector<BlockKey> prompt(length);
        for (std::size_t i = 0; i < length; ++i)
          prompt[i] = i < shared ? mix64(g + 1, i) : mix64(mix64(g + 1, p + 1000), i);
        keys.push_back(std::move(prompt));
      }
  }
  std::vector<std::vector<BlockKey>> keys;
};

/// Fills an index so that every endpoint holds some prompts of every group.
void fill(PrefixIndex& index, const Prompts& prompts, std::uint32_t endpoints) {
  RandomStream random(2, Stream::kTest);
  for (const auto& keys : prompts.keys)
    for (int copies = 0; copies < 2; ++copies)
      index.stored(EndpointId(random.below(endpoints)), kGpuTier, 0, keys, keys);
}

void lookup(benchmark::State& state) {
  const auto endpoints = static_cast<std::uint32_t>(state.range(0));
  const Prompts prompts(150, 5, 94, kPromptKeys);
  PrefixIndex index;
  fill(index, prompts, endpoints);
  MatchScratch scratch;
  for (const auto& keys : prompts.keys) {
    index.match(keys, scratch);
    std::uint32_t best = 0;
    for (const PrefixMatch& m : scratch.matches()) best = std::max(best, m.blocks);
    require(best == kPromptKeys, "the storing endpoint holds the whole prompt");
  }
  std::size_t next = 0;
  for (auto _ : state) {
    index.match(prompts.keys[next], scratch);
    benchmark::DoNotOptimize(scratch.matches().data());
    next = next + 7 < prompts.keys.size() ? next + 7 : next + 7 - prompts.keys.size();
  }
  state.counters["keys/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(kPromptKeys),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(lookup)->Arg(8)->Arg(1024)->Unit(benchmark::kNanosecond);

// A prompt the index shares only the group prefix of: 24 keys miss.
void lookup_partial(benchmark::State& state) {
  const Prompts stored(150, 5, 94, kPromptKeys);
  PrefixIndex index;
  fill(index, stored, 8);
  Prompts fresh(150, 5, 94, kPromptKeys);
  for (auto& keys : fresh.keys)
    for (std::size_t i = 94; i < keys.size(); ++i) keys[i] = mix64(keys[i]);
  MatchScratch scratch;
  index.match(fresh.keys[3], scratch);
  require(scratch.matches()[0].blocks == 94, "the shared prefix");
  std::size_t next = 0;
  for (auto _ : state) {
    index.match(fresh.keys[next], scratch);
    benchmark::DoNotOptimize(scratch.matches().data());
    next = next + 7 < fresh.keys.size() ? next + 7 : next + 7 - fresh.keys.size();
  }
}
BENCHMARK(lookup_partial);

/// The events of eight engines under cache pressure: a prompt's blocks are stored unless resident,
/// and a block is removed, in an event of its own, when the last resident prompt using it goes.
struct EngineTrace {
  struct Event {
    std::uint32_t endpoint = 0;
    std::uint32_t prompt = 0;
    std::uint32_t first = 0;  ///< Stored: keys [first, end) of the prompt.
    bool store = false;       ///< Otherwise key `first` is removed.
  };
  static constexpr std::uint32_t kEndpoints = 8;
  static constexpr std::size_t kResident = 60;  // Prompts an engine holds.

  explicit EngineTrace(const Prompts& prompts) {
    RandomStream random(5, Stream::kTest);
    std::array<std::vector<std::uint32_t>, kEndpoints> resident;
    std::array<std::unordered_map<BlockKey, int>, kEndpoints> uses;
    const auto leave = [&](std::uint32_t e) {
      const std::uint32_t prompt = resident[e].front();
      resident[e].erase(resident[e].begin());
      for (std::uint32_t i = kPromptKeys; i-- > 0;)
        if (--uses[e][prompts.keys[prompt][i]] == 0)
          events.push_back({.endpoint = e, .prompt = prompt, .first = i, .store = false});
    };
    for (std::uint32_t turn = 0; turn < 4000; ++turn) {
      const std::uint32_t e = turn % kEndpoints;
      const auto prompt = static_cast<std::uint32_t>(random.below(prompts.keys.size()));
      std::uint32_t first = kPromptKeys;
      for (std::uint32_t i = kPromptKeys; i-- > 0;)
        if (uses[e][prompts.keys[prompt][i]]++ == 0) first = i;
      if (first < kPromptKeys)
        events.push_back({.endpoint = e, .prompt = prompt, .first = first, .store = true});
      resident[e].push_back(prompt);
      if (resident[e].size() > kResident) leave(e);
    }
    for (std::uint32_t e = 0; e < kEndpoints; ++e)  // So that the trace can start again.
      while (!resident[e].empty()) leave(e);
  }
  std::vector<Event> events;
};

// Engine keys equal to the request keys (1) or not (0).
void ingest(benchmark::State& state) {
  const Prompts prompts(150, 5, 94, kPromptKeys);
  std::vector<std::vector<std::uint64_t>> engine = prompts.keys;
  if (state.range(0) == 0)
    for (auto& keys : engine)
      for (auto& key : keys) key = mix64(key);
  const EngineTrace trace(prompts);
  PrefixIndex index;
  std::int64_t updates = 0;
  const auto apply = [&](const EngineTrace::Event& event) {
    const EndpointId e(event.endpoint);
    const auto keys = std::span<const std::uint64_t>(engine[event.prompt]).subspan(event.first);
    if (!event.store) {
      index.removed(e, kGpuTier, keys[0]);
      ++updates;
      return;
    }
    const std::uint64_t parent = event.first == 0 ? 0 : engine[event.prompt][event.first - 1];
    const auto request = std::span<const BlockKey>(prompts.keys[event.prompt]).subspan(event.first);
    index.stored(e, kGpuTier, parent, keys, request);
    updates += static_cast<std::int64_t>(keys.size());
  };
  std::size_t most = 0;
  for (const auto& event : trace.events) {
    apply(event);
    most = std::max(most, index.request_key_count());
  }
  require(most > 10'000 && index.request_key_count() == 0, "the trace ends with empty engines");
  updates = 0;
  std::size_t next = 0;
  for (auto _ : state) {
    apply(trace.events[next]);
    if (++next == trace.events.size()) next = 0;
  }
  state.SetItemsProcessed(updates);
}
BENCHMARK(ingest)->Arg(1)->Arg(0);

// The same load through the wire: msgpack bytes in, request keys recomputed from token ids.
void ingest_wire(benchmark::State& state) {
  RandomStream random(3, Stream::kTest);
  std::vector<std::vector<std::uint8_t>> messages;
  constexpr std::size_t kBlocks = 24;
  for (std::uint64_t m = 0; m < 256; ++m) {
    BlockStored event;
    event.tokens = random_tokens(random, kBlocks * kBlock);
    event.block_size = kBlock;
    for (std::uint64_t b = 0; b < kBlocks; ++b) event.hashes.push_back(mix64(m + 1, b));
    KvEventBatch batch;
    batch.events.push_back(std::move(event));
    messages.push_back(encode_kv_batch(batch));
  }
  PrefixIndex index;
  TierRegistry tiers;
  KvIngestOptions options;
  options.block_size = kBlock;
  KvEventIngestor ingestor(options, index, tiers);
  for (const auto& m : messages)
    require(ingestor.apply_message(EndpointId(0), "m", m).empty(), "decode");
  require(index.request_key_count() == messages.size() * kBlocks, "all blocks are indexed");
  std::size_t next = 0;
  for (auto _ : state) {
    ingestor.apply_message(EndpointId(next / messages.size() % 8), "m",
                           messages[next % messages.size()]);
    ++next;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBlocks));
}
BENCHMARK(ingest_wire);

// ---- The approximate index
// --------------------------------------------------------------------------

void approx_match(benchmark::State& state) {
  const auto endpoints = static_cast<std::uint32_t>(state.range(0));
  const Prompts prompts(150, 5, 94, kPromptKeys);
  ApproxPrefixIndex index;
  RandomStream random(4, Stream::kTest);
  for (const auto& keys : prompts.keys)
    for (int copies = 0; copies < 4; ++copies) index.add(EndpointId(random.below(endpoints)), keys);
  std::vector<std::uint32_t> counts(endpoints);
  std::size_t next = 0;
  index.add_matches(prompts.keys[5], counts);
  require(*std::max_element(counts.begin(), counts.end()) == kPromptKeys, "a full match");
  for (auto _ : state) {
    std::fill(counts.begin(), counts.end(), 0);
    index.add_matches(prompts.keys[next++ % prompts.keys.size()], counts);
    benchmark::DoNotOptimize(counts.data());
  }
}
BENCHMARK(approx_match)->Arg(8)->Arg(1024);

void approx_add(benchmark::State& state) {
  const Prompts prompts(150, 5, 94, kPromptKeys);
  ApproxPrefixIndex index(5000);
  std::size_t next = 0;
  const auto step = [&] {
    index.add(EndpointId(next % 8), prompts.keys[next * 7 % prompts.keys.size()]);
    ++next;
  };
  for (int i = 0; i < 2000; ++i) step();
  for (std::uint32_t e = 0; e < 8; ++e) require(index.lru_size(EndpointId(e)) <= 5000, "capacity");
  for (auto _ : state) step();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPromptKeys));
}
BENCHMARK(approx_add);

// ---- Balancers
// --------------------------------------------------------------------------------------

void balance(benchmark::State& state, BalancerKind kind) {
  const auto n = static_cast<std::size_t>(state.range(0));
  std::vector<BalancerEndpoint> endpoints;
  for (std::size_t i = 0; i < n; ++i)
    endpoints.push_back({.name = "default/pod-" + std::to_string(i), .adapters = {}});
  auto balancer = make_balancer(kind, {}, 1);
  balancer->set_endpoints(endpoints);
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back("You are agent " + std::to_string(i) + ". ");
  std::vector<BalancerPick> ring(n * 10);
  std::size_t next = 0;
  const auto step = [&] {
    BalancerPick& slot = ring[next % ring.size()];
    if (next >= ring.size()) balancer->on_completed(slot);
    slot = *balancer->pick({.prefix = texts[next * 7 % texts.size()], .adapter = {}});
    balancer->on_sent(slot);
    ++next;
  };
  while (next < ring.size() * 2) step();
  require(balancer->total_in_flight() == ring.size(), "requests in flight");
  for (auto _ : state) step();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(balance, round_robin, BalancerKind::kRoundRobin)->Arg(8)->Arg(1024);
BENCHMARK_CAPTURE(balance, random, BalancerKind::kRandom)->Arg(8)->Arg(1024);
BENCHMARK_CAPTURE(balance, k8s_service, BalancerKind::kK8sService)->Arg(8)->Arg(1024);
BENCHMARK_CAPTURE(balance, least_load, BalancerKind::kLeastLoad)->Arg(8)->Arg(1024);
BENCHMARK_CAPTURE(balance, prefix_hash, BalancerKind::kPrefixHash)->Arg(8)->Arg(1024);

// Prompts of 8,000 tokens, 6,000 of them shared by the prompts of a group, as a simulation gives
// them; the load stays at ten requests per server.
void balance_by_cache(benchmark::State& state, std::string_view name, bool grpc) {
  const auto n = static_cast<std::size_t>(state.range(0));
  std::size_t row = 0;
  while (kBalancers[row].name != name) ++row;
  BalancerSettings settings;
  settings.smg.emplace().grpc = grpc;
  auto balancer = make_balancer(static_cast<BalancerKind>(row), settings, 1);
  std::vector<BalancerEndpoint> endpoints;
  for (std::size_t i = 0; i < n; ++i)
    endpoints.push_back({.name = "http://pod-" + std::to_string(i) + ":8000"});
  balancer->set_endpoints(endpoints);
  std::vector<BalancerPick> ring(n * 10);
  std::size_t next = 0;
  const auto step = [&] {
    const std::array<TextRun, 2> runs = {
        TextRun{.content = next * 7 % 2000, .offset = 0, .length = 6000},
        TextRun{.content = 10'000 + next, .offset = 0, .length = 2000}};
    const PromptText text{.runs = runs, .characters_per_unit = 4};
    const BalancerRequest request{
        .id = next, .text = text, .token_text = text, .prompt_tokens = 8000};
    BalancerPick& slot = ring[next % ring.size()];
    if (next >= ring.size()) balancer->on_completed(slot, {.id = next - ring.size()});
    slot = *balancer->pick(request);
    balancer->on_sent(slot, request);
    ++next;
  };
  while (next < ring.size() * 2) step();
  require(balancer->total_in_flight() == ring.size(), "requests in flight");
  for (auto _ : state) step();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(balance_by_cache, smg_text, "smg-cache-aware", false)->Arg(8)->Arg(1024);
BENCHMARK_CAPTURE(balance_by_cache, smg_tokens, "smg-cache-aware", true)->Arg(8)->Arg(1024);
BENCHMARK_CAPTURE(balance_by_cache, vllm_router, "vllm-router-cache-aware", false)
    ->Arg(8)
    ->Arg(1024);

}  // namespace
}  // namespace routesim::policies
