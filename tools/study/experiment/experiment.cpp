#include "tools/study/experiment/experiment.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/goodput.h"
#include "tools/results/statistics.h"
#include "tools/results/text_table.h"
#include "tools/results/version.h"

namespace routesim::tools {

void for_each_index(std::size_t count, std::size_t jobs,
                    const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> failed_at{count};  // The lowest index that failed.
  std::mutex mutex;
  std::exception_ptr failure;
  const auto drain = [&] {
    for (std::size_t i = next++; i < failed_at; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i > failed_at) continue;
        failed_at = i;
        failure = std::current_exception();
      }
    }
  };
  const std::size_t threads = std::min(jobs, count);
  if (threads <= 1) {
    drain();
  } else {
    // An arena of its own, so that a thread that waits here takes no work of another call. Where
    // the system allows fewer threads, those that run take all indices.
    const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, threads);
    tbb::task_arena arena(static_cast<int>(threads));
    arena.execute([&] {
      tbb::task_group others;
      for (std::size_t i = 1; i < threads; ++i) others.run(drain);
      drain();
      others.wait();
    });
  }
  if (failure) std::rethrow_exception(failure);
}

std::size_t default_jobs() {
#ifdef __linux__
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&allowed)));
#endif
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

namespace {

/// The contents of every file the variant names, added to the hash.
void add_files(const LoadedVariant& variant, KeyHash& hash, Diagnostics& diagnostics) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 36U;
  for (const ReferencedFile& file : referenced_files(variant)) {
    std::string text;
    if (!read_text_file(file.path, variant.provenance.nearest(file.key), file.key, kMostBytes, text,
                        diagnostics))
      continue;
    hash.add(file.key);
    hash.add(text);
  }
}

}  // namespace

std::optional<sim::RunPlan> prepare_candidate(const ScenarioRequest& candidate,
                                              Diagnostics& diagnostics) {
  const LoadedScenario loaded = load_scenario(candidate, diagnostics);
  if (diagnostics.has_errors() || loaded.variants.empty()) return std::nullopt;
  return prepare(loaded.variants.front(), diagnostics);
}

LoadedScenario load_checked(const ScenarioRequest& request, Diagnostics& diagnostics) {
  LoadedScenario loaded = load_scenario(request, diagnostics);
  if (diagnostics.has_errors())
    for (const LoadedVariant& variant : loaded.variants) check_variant(variant, diagnostics);
  return loaded;
}

void KeyHash::add(std::string_view part) {
  const std::string size = std::to_string(part.size()) + ":";
  hash_.update(size.data(), size.size());
  hash_.update(part.data(), part.size());
}

std::string KeyHash::finish() { return encode_hex(hash_.finish()).substr(0, 32); }

std::string candidate_key(const LoadedVariant& variant, std::span<const std::string> parts,
                          Diagnostics& diagnostics) {
  sim::Scenario scenario = variant.scenario;
  // Neither the words nor what results are compared with change what a run does.
  scenario.question.clear();
  scenario.measured = {};
  scenario.expect.clear();
  KeyHash hash;
  hash.add(version());
  hash.add(commit());
  hash.add(scenario.variant);
  for (const std::string& part : parts) hash.add(part);
  const FieldDescription values =
      describe_values([&scenario](Describer& d) { describe(d, scenario); });
  hash.add(to_json(*to_node(values)));
  add_files(variant, hash, diagnostics);
  return hash.finish();
}

namespace {

using sim::FleetMark;
using sim::MissedSpan;

/// Marks that may explain a miss, as sim::Fleet writes them. Of what lasts: the mark that ends it,
/// and what is said of it until then.
struct Kind {
  std::string_view begins, ends = {}, lasts = {};
};
constexpr std::array<Kind, 15> kKinds = {
    {{"crashes"},
     {"vanishes with its machine"},
     {"is evicted"},
     {"scales from "},
     {"finds no place for another server"},
     {"trips a router's breaker"},
     {"roll-out begins", "roll-out is over", "is being rolled out"},
     {"is slow", "is as fast as before", "is slow"},
     {"loses its KV events", "has its KV events heard again", "has lost its KV events"},
     {"loses its link", "has its link back", "has lost its link"},
     {"is not scraped", "is scraped again", "is not scraped"},
     {"waits for its disruption budget", "is evicted", "waits for its disruption budget"},
     {"drains", "restarts", "drains"},
     {"restarts", "is back", "is away"},
     {"leads"}}};

/// `45 s before`, `12 min before`.
std::string before_text(double seconds) {
  const bool short_ago = seconds < 120;
  return " " + fixed_text(short_ago ? seconds : seconds / 60, 0) + (short_ago ? " s" : " min") +
         " before";
}

/// The servers of all pools from an instant on.
struct Servers {
  double at_s = 0;
  std::int64_t ready = 0, wanted = 0;
};

std::vector<Servers> servers_of(const sim::FleetResult& fleet) {
  std::multimap<double, std::pair<std::size_t, sim::FleetPoint>> changes;
  for (std::size_t p = 0; p < fleet.pools.size(); ++p)
    for (const sim::FleetPoint& point : fleet.pools[p].points)
      changes.emplace(point.at_s, std::pair(p, point));
  std::vector<Servers> out;
  std::vector<sim::FleetPoint> now(fleet.pools.size());
  for (const auto& [at, change] : changes) {
    now[change.first] = change.second;
    if (out.empty() || out.back().at_s != at) out.push_back({.at_s = at});
    out.back().ready = out.back().wanted = 0;
    for (const sim::FleetPoint& point : now) {
      out.back().ready += point.ready;
      out.back().wanted += point.wanted;
    }
  }
  return out;
}

/// What a run knows of its fleet.
class Witness {
 public:
  Witness(const sim::Scenario& scenario, const sim::RunResult& run)
      : run_(run), marks_(run.fleet ? run.fleet->marks : kNoMarks) {
    if (run.fleet) servers_ = servers_of(*run.fleet);
    for (const sim::PoolConfig& pool : scenario.cluster.pools)
      if (pool.autoscaler) most_ += sim::most_replicas(*pool.autoscaler);
  }

  /// What there was from the beginning of a stretch until its last miss was noticed.
  /// `first_s`: until the last miss of its first bin was noticed. What happens later is no cause of
  /// a stretch that has begun.
  /// `t`: all requests of that kind.
  std::string tell(const sim::Timeline& t, const MissedSpan& span, double first_s,
                   double until_s) const;
  std::int64_t part = -1;  ///< The load of a mix that it tells of; -1 = all.

 private:
  static inline const std::vector<FleetMark> kNoMarks;

  struct Shortage {
    double since_s = 0;  ///< Fewer serve than are wanted from then on.
    Servers worst{};
  };
  Shortage shortage(double from, double until) const;
  bool lasts(std::size_t mark, const Kind& kind, double from) const;
  std::string events(double from, double since, double until) const;
  std::optional<std::pair<double, double>> overload(double from, double to) const;
  std::string overload_after(double lack_s, const MissedSpan& span) const;
  std::string serve_text(std::int64_t ready) const;
  std::string load(const sim::Timeline& t, const MissedSpan& span, bool told, bool lacks) const;
  std::optional<std::int64_t> ready_at(double at_s) const;

  const sim::RunResult& run_;
  const std::vector<FleetMark>& marks_;
  std::vector<Servers> servers_;
  std::int64_t most_ = 0;  ///< Servers that autoscalers may have.
};

std::string text_of(const FleetMark& m) { return m.subject + " " + m.what; }

/// 1 or -1 where a text says that `subject` scales up or down at that time; else 0.
int direction(const std::string& text, const std::string& subject) {
  const std::string step = subject + " scales from ";
  if (!text.starts_with(step) || text.ends_with(" before")) return 0;
  const auto number = [](std::string_view t) {
    std::int64_t n = -1;  // Another pool, whose name begins so.
    std::from_chars(t.data(), t.data() + t.size(), n);
    return n;
  };
  const std::string_view all = text;
  const std::int64_t from = number(all.substr(step.size()));
  return from < 0 ? 0 : number(all.substr(all.rfind(" to ") + 4)) > from ? 1 : -1;
}

/// The largest one of that time.
Witness::Shortage Witness::shortage(double from, double until) const {
  Shortage found;
  double since = 0;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const Servers& s = servers_[i];
    const double end = i + 1 < servers_.size() ? servers_[i + 1].at_s : until + 1;
    if (i == 0 || servers_[i - 1].ready >= servers_[i - 1].wanted) since = s.at_s;
    const std::int64_t lacks = s.wanted - s.ready;
    if (s.at_s <= until && end > from && lacks > found.worst.wanted - found.worst.ready)
      found = {.since_s = since, .worst = s};
  }
  return found;
}

/// Servers that serve; nothing where the fleet does not change.
std::optional<std::int64_t> Witness::ready_at(double at) const {
  if (servers_.empty()) return std::nullopt;
  const auto next = std::ranges::find_if(servers_, [at](const Servers& s) { return s.at_s > at; });
  return (next == servers_.begin() ? next : next - 1)->ready;
}

bool Witness::lasts(std::size_t mark, const Kind& kind, double from) const {
  if (kind.ends.empty()) return false;
  for (std::size_t i = mark + 1; i < marks_.size() && marks_[i].at_s < from; ++i)
    if (marks_[i].subject == marks_[mark].subject &&
        (marks_[i].what == kind.ends || marks_[i].what == "is gone"))
      return false;
  return true;
}

/// `all 3 serve, of at most 8`.
std::string Witness::serve_text(std::int64_t ready) const {
  return (ready == 0   ? "no server serves"
          : ready == 1 ? "the one server serves"
                       : "all " + std::to_string(ready) + " serve") +
         (most_ > ready ? ", of at most " + std::to_string(most_) : "");
}

/// Events since `since`, and those that last until `from`.
std::string Witness::events(double from, double since, double until) const {
  std::vector<std::string> told;
  for (std::size_t i = 0; i < marks_.size() && marks_[i].at_s <= until; ++i)
    for (const Kind& kind : kKinds) {
      const FleetMark& m = marks_[i];
      const bool goes_on = m.at_s < from && lasts(i, kind, from);
      if (!m.what.starts_with(kind.begins) || (m.at_s < since && !goes_on)) continue;
      const std::string text = goes_on         ? m.subject + " " + std::string(kind.lasts)
                               : m.at_s < from ? text_of(m) + before_text(from - m.at_s)
                                               : text_of(m);
      // Steps of one growth are one: `scales from 3 to 4`, and then `from 4 to 6`.
      const int now = direction(text, m.subject);
      if (now != 0 && !told.empty() && direction(told.back(), m.subject) == now)
        told.back().replace(told.back().rfind(" to "), std::string::npos,
                            text.substr(text.rfind(" to ")));
      else if (std::ranges::find(told, text) == told.end())
        told.push_back(text);
    }
  constexpr std::size_t kMostTold = 3;
  const std::size_t more = told.size() > kMostTold ? told.size() - kMostTold + 1 : 0;
  if (more > 0) {
    told.resize(told.size() - more);
    told.push_back(std::to_string(more) + " more events");
  }
  return joined(told);
}

/// Requests sent a second in the bins that have a part of this time.
double rate_in(const sim::Timeline& t, double from, double to) {
  const std::int64_t first = std::int64_t(from / t.bin_s), all = std::ssize(t.sent);
  const std::int64_t end = std::max(first + 1, std::int64_t(std::ceil(to / t.bin_s)));
  const auto at = [&](std::int64_t i) { return t.sent.begin() + std::min(i, all); };
  return static_cast<double>(std::accumulate(at(first), at(end), 0LL)) /
         (static_cast<double>(end - first) * t.bin_s);
}

double seconds_of(SimTime at) { return (at - SimTime::zero()).to_seconds(); }

/// The time between two instants in which an overloaded stage sends for longest; empty for none.
std::optional<std::pair<double, double>> Witness::overload(double from, double to) const {
  std::optional<std::pair<double, double>> longest;
  for (const sim::StageResult& s : run_.stages) {
    const double first = std::max(from, seconds_of(s.first_send));
    const double last = std::min(to, seconds_of(s.last_send));
    if (s.requests > 0 && s.overloaded() && first <= last &&
        (!longest || last - first > longest->second - longest->first))
      longest = {first, last};
  }
  return longest;
}

/// What is to be said of the load: an overload where no server is missing, a burst or the stage
/// that begins then, and where nothing else is told how much it is.
std::string Witness::load(const sim::Timeline& t, const MissedSpan& span, bool told,
                          bool lacks) const {
  constexpr double kBurst = 1.5, kBeginning = 300;
  const double all = static_cast<double>(std::accumulate(t.sent.begin(), t.sent.end(), 0LL));
  const double mean = all / (60 * t.minutes());
  // The load of the time before, as long as the stretch and at least five minutes.
  const double since = std::max(0.0, span.from_s - std::max(kBeginning, span.to_s - span.from_s));
  const double usual = std::max(mean, since < span.from_s ? rate_in(t, since, span.from_s) : 0.0);
  double rate = static_cast<double>(span.sent) / (span.to_s - span.from_s);
  std::string what = rate >= kBurst * usual ? "a burst of " : told ? "" : "no event at that time, ";
  const auto over = lacks ? std::nullopt : overload(span.from_s, span.to_s);
  if (over) {
    what = "overload, ";
    rate = rate_in(t, over->first, over->second);
  }
  for (const sim::StageResult& s : run_.stages) {
    const double from = seconds_of(s.first_send);
    if (over || s.requests == 0 || (part >= 0 && s.info.part != part) ||
        std::abs(from - span.from_s) > t.bin_s)
      continue;
    const double own = rate_in(t, from, std::min(seconds_of(s.last_send), from + kBeginning));
    if (own < kBurst * usual) continue;
    what = "stage " + s.info.name + " begins with ";
    rate = own;
  }
  const auto per_second = [](double r) { return number_text(with_digits(r, 3)); };
  if (what.empty()) return what;
  return what + per_second(rate) + " req/s where " + per_second(mean) + " are the mean";
}

/// `, then overload (all 4 serve)`, where a stage is overloaded for longer after all servers that
/// are missing at `lack_s` are back than the stretch lasts until then.
std::string Witness::overload_after(double lack_s, const MissedSpan& span) const {
  const auto whole = std::ranges::find_if(servers_, [&](const Servers& s) {
    return s.at_s > lack_s && s.ready > 0 && s.ready >= s.wanted;
  });
  if (whole == servers_.end()) return {};
  const double since = std::max(span.from_s, whole->at_s);
  const auto over = overload(since, span.to_s);
  if (!over || over->second - over->first <= since - span.from_s) return {};
  return ", then overload (" + serve_text(*ready_at(over->first)) + ")";
}

std::string Witness::tell(const sim::Timeline& t, const MissedSpan& span, double first,
                          double until) const {
  const Shortage lack = shortage(span.from_s, first);
  const bool lacks = lack.worst.wanted > lack.worst.ready;
  const std::string what =
      events(span.from_s, lacks ? std::min(lack.since_s, span.from_s) : span.from_s, first);
  const bool none = ready_at(span.from_s) == 0;
  const bool told = !what.empty() || lacks || none;
  std::string text = load(t, span, told, lacks || none);
  if (!what.empty()) text += (text.empty() ? "" : "; ") + what;
  const std::string later = events(0, std::nextafter(first, INFINITY), until);
  if (!later.empty()) text += (text.empty() ? "later " : "; later ") + later;
  constexpr double kShortlyBefore = 120;
  const auto last = std::ranges::find_if(marks_.rbegin(), marks_.rend(),
                                         [&](const FleetMark& m) { return m.at_s < span.from_s; });
  if (!told && last != marks_.rend() && span.from_s - last->at_s <= kShortlyBefore)
    text += "; " + text_of(*last) + before_text(span.from_s - last->at_s);
  std::string servers;
  Shortage during = shortage(span.from_s, until);
  if (lacks || during.worst.ready >= ready_at(span.from_s).value_or(0)) during = lack;
  if (during.worst.wanted > during.worst.ready) {
    servers = std::to_string(during.worst.ready) + " of " +
              counted(static_cast<std::size_t>(during.worst.wanted), "server") + " serve" +
              (lacks ? "" : " then");
  } else if (!servers_.empty()) {
    servers = serve_text(*ready_at(first));
  }
  if (!servers.empty()) text += text.empty() ? servers : " (" + servers + ")";
  if (lacks || none) text += overload_after(lacks ? lack.worst.at_s : span.from_s, span);
  if (!told && !marks_.empty() && run_.fleet->unmarked > 0 && until > marks_.back().at_s)
    text += "; later events are not listed";
  return text;
}

}  // namespace

void complete_timeline(const sim::TimelineCounter& whole,
                       const std::map<std::int64_t, sim::TimelineCounter>& loads,
                       const sim::Scenario& scenario, bool goals, sim::RunResult& run) {
  const sim::TimelineCounter shown = whole.folded();
  sim::Timeline& t = run.timeline.emplace(shown.timeline());
  const auto are = [](const std::vector<std::int64_t>& bins, std::int64_t all) {
    return std::accumulate(bins.begin(), bins.end(), std::int64_t{0}) == all;
  };
  ROUTESIM_CHECK(are(t.sent, run.summary.requests) && are(t.answered, run.summary.successes) &&
                     are(t.failed, run.summary.failures),
                 "the timeline has other requests than the summary");
  if (!goals) return;
  const std::optional<double> expected = expected_share(scenario);
  t.goals = {.good = shown.good(),
             .share = expected.value_or(sim::kUsualShare),
             .expected = expected.has_value()};
  std::vector<bool> bins(whole.timeline().sent.size());  // Stretches of two loads may overlap.
  Witness witness(scenario, run);
  const auto judge = [&](const sim::TimelineCounter& c, const std::string& load) {
    sim::Timeline own = c.timeline();
    own.goals = {.good = c.good(), .share = t.goals->share};
    own.goals->missed = sim::missed_spans(own);
    const std::vector<bool> missed = own.missed_bins();
    for (std::size_t i = 0; i < missed.size(); ++i) bins[i] = bins[i] || missed[i];
    for (MissedSpan& span : own.goals->missed) {
      MissedSpan first = span;
      first.to_s = span.from_s + own.bin_s;
      span.why = load + witness.tell(own, span, c.last_miss_s(first), c.last_miss_s(span));
      t.goals->missed.push_back(std::move(span));
    }
  };
  if (loads.empty()) judge(whole, "");
  const std::vector<sim::MixPart>& mix = scenario.workload.mix;
  for (const auto& [part, of_load] : loads) {  // A caller's own load may have parts without names.
    witness.part = part;
    judge(of_load, (part < std::ssize(mix) ? printable(mix[static_cast<std::size_t>(part)].name)
                                           : "load " + std::to_string(part)) +
                       ": ");
  }
  std::ranges::stable_sort(t.goals->missed, {}, &MissedSpan::from_s);
  run.summary.fleet.missed_minutes = t.goals->missed_minutes =
      static_cast<double>(std::ranges::count(bins, true)) * whole.timeline().bin_s / 60;
}

std::optional<sim::RunResult> simulate(const sim::RunPlan& plan, const sim::RunOptions& options,
                                       Diagnostics& found) {
  sim::Simulation simulation(plan, options, found);
  if (found.has_errors()) return std::nullopt;
  const auto named = [&](const InternalError& e) {
    return std::string(e.what()) + "\n  in variant " + printable(plan.scenario.variant) +
           " with seed " + std::to_string(options.seed);
  };
  try {
    return simulation.run();
  } catch (const sim::StuckError& e) {
    throw sim::StuckError(named(e));
  } catch (const InternalError& e) {
    throw InternalError(named(e));
  }
}

void check_setup(const sim::RunPlan& plan, Diagnostics& found) {
  const sim::Simulation set_up(plan, {.seed = plan.scenario.seed, .observers = {}}, found);
}

void Experiment::tell(const std::function<void()>& collect) {
  if (!progress_.awaited.exchange(false)) return;
  if (collect) collect();
  progress_.look();
}

void Experiment::throw_if_stopped() const {
  if (stopped() || diagnostics_.has_errors()) throw Stopped{};
}

void Experiment::each(std::size_t count,
                      const std::function<void(std::size_t, Diagnostics&)>& work) {
  std::atomic<std::size_t> first_bad{count};
  std::mutex mutex;
  Diagnostics lowest;  // Of `first_bad`.
  for_each_index(count, jobs_, [&](std::size_t i) {
    if (stopped() || i > first_bad) return;
    Diagnostics found;
    work(i, found);
    if (!found.has_errors()) return;
    const std::lock_guard lock(mutex);
    if (i > first_bad) return;
    first_bad = i;
    lowest = std::move(found);
  });
  append(diagnostics_, lowest);
  throw_if_stopped();
}

std::optional<sim::RunResult> Experiment::run(const RunRequest& request, Diagnostics& found) {
  const sim::WorkloadConfig& workload = request.plan.scenario.workload;
  GoodputObserver goodput(request.goals, workload.output_token_scale,
                          sim::client_sees_tokens(workload));
  std::vector<sim::Observer*> observers = request.observers;
  if (!request.goals.empty() || GoodputObserver::keeps_time(request.plan.scenario))
    observers.push_back(&goodput);
  std::optional<sim::RunResult> result = simulate(request.plan,
                                                  {.seed = request.seed,
                                                   .check = request.check,
                                                   .progress = &progress_.run,
                                                   .observers = std::move(observers)},
                                                  found);
  if (!result) return std::nullopt;
  ++progress_.runs;
  if (stopped() && !request.partial) return std::nullopt;
  if (goodput.over_time())
    complete_timeline(*goodput.over_time(), goodput.loads_over_time(), request.plan.scenario,
                      !request.goals.empty(), *result);
  if (request.goals.empty()) return result;
  goodput.complete(*result);
  if (request.good != nullptr) *request.good = goodput.result(*result);
  return result;
}

void Experiment::probe(const sim::RunPlan& plan, std::uint64_t seed, sim::Observer& observer,
                       sim::Progress& own, Diagnostics& found) {
  /// Passes a stop on at the observer's ticks.
  struct Stopper final : sim::Observer {
    Stopper(sim::Observer& watch, const std::atomic<bool>& from, std::atomic<bool>& to)
        : observer(watch), all(from), one(to) {}
    SimTime next_tick() const override { return observer.next_tick(); }
    void on_tick(SimTime) override {
      if (all.load(std::memory_order_relaxed)) one = true;
    }
    sim::Observer& observer;
    const std::atomic<bool>& all;
    std::atomic<bool>& one;
  };
  Stopper stopper(observer, progress_.run.stop, own.stop);
  simulate(plan, {.seed = seed, .progress = &own, .observers = {&stopper, &observer}}, found);
  ++progress_.runs;
  progress_.run.completed += own.completed;
}

namespace {

/// The watched values of a plan, by replication.
using Watched = std::vector<std::optional<double>>;

/// Whether to end after these runs of every plan, and why.
std::optional<StopReason> look(const StoppingRule& rule, const std::vector<Watched>& watched) {
  bool precise = true;
  for (const Watched& plan : watched) {
    std::vector<double> values;
    for (const std::optional<double>& value : plan) {
      if (!value) return StopReason::kNoData;
      values.push_back(*value);
    }
    precise = precise && is_precise(rule, values);
  }
  if (precise) return StopReason::kPrecise;
  const bool at_limit = watched.empty() || watched.front().size() >= rule.limit;
  return at_limit ? std::optional(StopReason::kLimit) : std::nullopt;
}

}  // namespace

void replicate(const Replicated& what, const ReplicationRange& range, const ReplicationWork& work,
               Experiment& experiment) {
  const std::size_t plans = what.plans;
  // First runs that keep their order are one job.
  const bool chained = what.first_in_order && range.first == 0 && range.count > 0 && plans > 0;
  const std::size_t skipped = chained ? plans - 1 : 0;
  experiment.each(plans * range.count - skipped, [&](std::size_t job, Diagnostics& found) {
    if (chained && job == 0) {
      for (std::size_t plan = 0; plan < plans && !found.has_errors(); ++plan)
        if (!experiment.stopped()) work({.plan = plan, .number = 0}, found);
      return;
    }
    const std::size_t run = job + skipped;
    const std::size_t round = run / plans;
    // Every other round goes backwards, so that a core which got a long variant gets a short one
    // next and all cores end together.
    const std::size_t plan = round % 2 == 0 ? run % plans : plans - 1 - run % plans;
    work({.plan = plan, .number = range.first + round}, found);
  });
}

std::size_t next_look(const StoppingRule& rule, std::size_t done) {
  const std::size_t next = done < rule.first_look ? rule.first_look : done + rule.batch;
  return std::min(next, rule.limit);
}

bool is_precise(const StoppingRule& rule, std::span<const double> values) {
  const sim::Estimate e = sim::estimate(values);
  return e.half_width <= rule.relative_half_width * std::abs(e.mean);
}

StoppedAt replicate_until(const Replicated& what, const StoppingRule& rule, const WatchedWork& work,
                          Experiment& experiment) {
  ROUTESIM_CHECK(rule.batch > 0 && rule.limit > 0, "a stopping rule must make headway");
  std::vector<Watched> watched(what.plans);
  for (std::size_t done = 0;;) {
    const std::size_t next = next_look(rule, done);
    for (Watched& plan : watched) plan.resize(next);
    const auto watch = [&](const Replication& r, Diagnostics& found) {
      watched[r.plan][r.number] = work(r, found);
    };
    replicate(what, {.first = done, .count = next - done}, watch, experiment);
    done = next;
    if (const std::optional<StopReason> reason = look(rule, watched)) return {*reason, next};
  }
}

}  // namespace routesim::tools
