// What the tests of sim/ share: step-time models with round numbers, prompts by hand, and a driver
// that feeds one server and collects what it says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/latency_model.h"
#include "sim/engine/replica.h"
#include "sim/kv/prompt_keys.h"
#include "sim/network/links.h"
#include "workloads/prompts.h"

namespace routesim::sim::testing {

inline SimTime at_ms(std::int64_t ms) { return SimTime::zero() + Duration::milliseconds(ms); }

/// Every step takes the same time.
class FixedLatency final : public models::LatencyModel {
 public:
  explicit FixedLatency(std::int64_t ms) : ticks_(ms * models::kTicksPerMillisecond) {}
  std::int64_t step_ticks(const models::BatchShape&) const override { return ticks_; }
  models::DecodeRun decode_run(const models::BatchShape&) const override {
    return {ticks_, 0, 1 << 20};
  }
  models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
  std::string provenance() const override { return "fixed"; }

 private:
  std::int64_t ticks_;
};

/// max(floor, base + slopes): odd coefficients, so that no two histories give the same time by
/// chance, and a knee in the decode context.
class KneeLatency final : public models::LatencyModel {
 public:
  struct Coefficients {
    // Ticks: about 1 ms a step, 0.07 ms a sequence, 0.02 ms a prompt token.
    std::int64_t floor = 0;
    std::int64_t base = 1'024'000'003;
    std::int64_t sequence = 71'680'001;
    std::int64_t draft = 5'120'017;
    std::int64_t context = 1'024'009;
    std::int64_t shared = 307'213;
    std::int64_t prefill_token = 20'480'011;
    std::int64_t prefill_pair = 7'169;
    std::int64_t chunk = 51'200'021;
    std::int64_t group_token = 9'216'001;
    std::int64_t head = 0;              ///< Per sequence, in the last stage of a pipeline.
    std::int64_t fitted_context = 400;  ///< Tokens of unshared decode context.
  };
  explicit KneeLatency(const Coefficients& c) : c_(c) {}

  std::int64_t step_ticks(const models::BatchShape& s) const override {
    return std::max(c_.floor, slope(s));
  }
  std::int64_t last_stage_ticks(const models::BatchShape& s) const override {
    return std::min(step_ticks(s), c_.head * s.sampled());
  }
  models::DecodeRun decode_run(const models::BatchShape& s) const override {
    const std::int64_t first = slope(s);
    const std::int64_t increment = c_.context * s.decode_requests;
    if (first >= c_.floor) return {first, increment, 1 << 20};
    return {c_.floor, 0, (c_.floor - first) / std::max<std::int64_t>(1, increment) + 1};
  }
  models::Trust trust(const models::BatchShape& s) const override {
    return s.decode_context - s.shared_context > c_.fitted_context ? models::Trust::kExtrapolated
                                                                   : models::Trust::kFitted;
  }
  std::string provenance() const override { return "knee"; }

 private:
  std::int64_t slope(const models::BatchShape& s) const {
    return c_.base + c_.sequence * s.decode_requests + c_.draft * s.draft_tokens +
           c_.context * (s.decode_context - s.shared_context) + c_.shared * s.shared_context +
           c_.prefill_token * s.prefill_tokens + c_.prefill_pair * s.prefill_pairs +
           c_.chunk * s.prefill_requests + c_.group_token * (s.group_tokens + s.group_total_tokens);
  }
  Coefficients c_;
};

/// Nobody listens to KV events.
class NoKeys final : public SequenceKeySource {
 public:
  void request_keys(std::uint32_t, std::int64_t, std::int64_t, std::int64_t,
                    std::vector<std::uint64_t>&) override {}
  BlockKey answer_key(std::uint32_t, std::int64_t) override { return 0; }
};

inline std::shared_ptr<const workloads::Prompt> make_prompt(
    std::uint64_t id, const std::vector<std::pair<std::uint64_t, std::int64_t>>& parts,
    std::uint32_t adapter = 0) {
  workloads::PromptBuilder builder;
  for (const auto& [content, length] : parts) builder.append(content, length);
  auto prompt = std::make_shared<workloads::Prompt>(*std::move(builder).build(id));
  prompt->adapter = adapter;
  return prompt;
}

/// Rules with everything off that a test does not ask for.
inline EngineRules plain_rules(std::int64_t num_gpu_blocks = 1001) {
  EngineRules r;
  r.num_gpu_blocks = num_gpu_blocks;
  r.reserve_full_isl = false;
  r.async_scheduling = false;
  return r;
}

/// One request as a test writes it.
struct TestRequest {
  std::vector<std::pair<std::uint64_t, std::int64_t>> parts;  ///< Content and length.
  std::int64_t output = 1;
  std::int64_t max_tokens = 0;  ///< 0 = output.
  std::int32_t priority = 0;
  bool private_answer = true;  ///< No later prompt contains the answer.
  bool hold = false;           ///< A prefill leg: keeps its blocks until they are released.
};

/// Turns test requests into engine requests and keeps their keys alive. The handle is the index.
class RequestShelf {
 public:
  explicit RequestShelf(std::int64_t block_size) : block_size_(block_size) {}

  EngineRequest add(const TestRequest& t) {
    const auto handle = static_cast<std::uint32_t>(entries_.size());
    Entry& e = *entries_.emplace_back(std::make_unique<Entry>());
    e.prompt = make_prompt(handle, t.parts);
    append_engine_keys(*e.prompt, block_size_, e.keys);
    return {.handle = handle,
            .keys = &e.keys,
            .prompt_tokens = e.prompt->tokens,
            .output_tokens = t.output,
            .max_tokens = std::max(t.output, t.max_tokens),
            .output_content = 1'000'000 + handle,
            .private_answer = t.private_answer,
            .arrival_order = handle,
            .draws = handle,
            .priority = t.priority,
            .hold_blocks = t.hold};
  }

 private:
  struct Entry {
    std::shared_ptr<const workloads::Prompt> prompt;
    EngineKeys keys;
  };
  std::int64_t block_size_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

/// What became of one request.
struct Fate {
  SimTime first, finish;
  std::int64_t preemptions = 0;
  std::int64_t cached = 0;
  bool finished = false;
  bool unservable = false;
  bool operator==(const Fate&) const = default;
};

/// The copies between the GPUs of one engine core and its host, which has a link per direction to
/// itself.
class HostCopies {
 public:
  explicit HostCopies(double link_bytes_per_s) {
    for (Queue& q : queues_) q.link.add(link_bytes_per_s);
  }
  void start(const TierCopy& copy, SimTime now) {
    Queue& q = queues_[static_cast<std::size_t>(copy.direction)];
    q.copies.push_back(copy);
    if (q.copies.size() == 1) begin(q, now);
  }
  SimTime next_end() const {
    return std::min(queues_[0].link.next_end(), queues_[1].link.next_end());
  }
  /// Takes out the copy that ends now; of two, the one that began first.
  TierCopy pop(SimTime now) {
    const auto when = [](const Queue& q) { return std::pair(q.link.next_end(), q.begun); };
    Queue& q = when(queues_[0]) < when(queues_[1]) ? queues_[0] : queues_[1];
    std::vector<std::uint64_t> done;
    q.link.advance(now, done);
    const TierCopy copy = q.copies.front();
    q.copies.pop_front();
    if (!q.copies.empty()) begin(q, now);
    return copy;
  }

 private:
  struct Queue {
    Links link;
    std::deque<TierCopy> copies;
    int begun = 0;  ///< Orders beginnings.
  };
  void begin(Queue& q, SimTime now) {
    q.begun = ++begun_;
    q.link.start(0, {0}, q.copies.front().bytes, now);
  }
  Queue queues_[2];
  int begun_ = 0;
};

/// One server on its own; with tiers it must have one rank.
class Server {
 public:
  Server(const EngineRules& rules, std::shared_ptr<const models::LatencyModel> latency,
         bool reference = false, int ranks = 1)
      : known_answers_(reference || rules.window_groups > 0 || rules.by_result()),
        tiers_(rules.tiers.in_use()),
        copies_(std::max(1.0, rules.tiers.link_bytes_per_s)),
        shelf_(rules.block_size),
        replica_(options(rules, std::move(latency), reference, ranks), keys_) {
    replica_.count_gaps_in(&gaps);
  }

  std::uint32_t send(const TestRequest& t, SimTime now, int rank = 0) {
    EngineRequest r = shelf_.add(t);
    if (known_answers_) r.private_answer = false;  // it looks everything up by key
    fates.emplace_back();
    run_until(now);
    replica_.deliver(rank, r, now);
    read();
    start_copies(now);
    return r.handle;
  }
  void abort(std::uint32_t handle, SimTime now, int rank = 0) {
    run_until(now);
    replica_.abort(rank, handle, now);
    read();
    start_copies(now);
  }
  /// The blocks that a prefill leg keeps were read.
  void release(std::uint32_t handle, SimTime now, int rank = 0) {
    run_until(now);
    replica_.release_held(rank, handle, now);
    read();
    start_copies(now);
  }
  void run_until(SimTime now) {
    while (tiers_) {
      const SimTime next = std::min(replica_.next_wake(), copies_.next_end());
      if (next > now) break;
      replica_.advance_to(next);
      read();
      start_copies(next);
      if (copies_.next_end() != next) continue;
      replica_.copy_done(0, copies_.pop(next).id, next);
      read();
      start_copies(next);
    }
    replica_.advance_to(now);
    read();
  }
  void run() { run_until(SimTime::from_ns(std::int64_t{1} << 60)); }
  Replica& replica() { return replica_; }
  const BatchScheduler& scheduler(int rank = 0) const { return replica_.scheduler(rank); }

  std::vector<Fate> fates;
  std::vector<EngineOutput> log;  ///< Everything the server said.
  Samples gaps;

 private:
  static ReplicaOptions options(const EngineRules& rules,
                                std::shared_ptr<const models::LatencyModel> latency, bool reference,
                                int ranks) {
    ReplicaOptions o;
    o.rules = rules;
    o.latency = std::move(latency);
    o.ranks = ranks;
    o.reference = reference;
    return o;
  }

  void read() {
    for (const EngineOutput& o : replica_.outputs()) {
      log.push_back(o);
      Fate& f = fates[o.handle];
      if (o.kind == EngineOutputKind::kFirstToken) f.first = o.at;
      if (o.kind == EngineOutputKind::kResumedToken) gaps.add_nano(o.value, 1);
      gaps.add_nano(0, o.together);
      if (o.kind == EngineOutputKind::kUnservable) f.unservable = true;
      if (o.kind != EngineOutputKind::kFinished) continue;
      f.finish = o.at;
      f.preemptions = o.value;
      f.cached = o.cached_tokens;
      f.finished = true;
    }
    replica_.outputs().clear();
  }

  void start_copies(SimTime now) {
    for (const Replica::RankCopy& c : replica_.copies()) copies_.start(c.copy, now);
    replica_.copies().clear();
  }

  bool known_answers_;
  bool tiers_;
  HostCopies copies_;
  NoKeys keys_;
  RequestShelf shelf_;
  Replica replica_;
};

}  // namespace routesim::sim::testing
