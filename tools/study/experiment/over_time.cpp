#include "tools/study/experiment/over_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/goodput.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

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

 private:
  static inline const std::vector<FleetMark> kNoMarks;

  struct Shortage {
    double since_s = 0;  ///< Fewer serve than are wanted from then on.
    Servers worst{};
  };
  Shortage shortage(double from, double until) const;
  bool lasts(std::size_t mark, const Kind& kind, double from) const;
  std::string events(double from, double since, double until) const;
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
  const std::int64_t from = std::stoll(text.substr(step.size()));
  return std::stoll(text.substr(text.rfind(" to ") + 4)) > from ? 1 : -1;
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

/// The load of the time before, as long as the stretch and at least five minutes, requests/s.
double rate_before(const sim::Timeline& t, const MissedSpan& span) {
  const double from = std::max(0.0, span.from_s - std::max(300.0, span.to_s - span.from_s));
  double sent = 0, seconds = 0;
  for (std::size_t i = static_cast<std::size_t>(from / t.bin_s);
       i < t.sent.size() && static_cast<double>(i + 1) * t.bin_s <= span.from_s; ++i) {
    sent += static_cast<double>(t.sent[i]);
    seconds += t.bin_s;
  }
  return seconds > 0 ? sent / seconds : 0;
}

/// What is to be said of the load: an overload where no server is missing, a burst, and where
/// nothing else is told how much it is.
std::string Witness::load(const sim::Timeline& t, const MissedSpan& span, bool told,
                          bool lacks) const {
  constexpr double kBurst = 1.5;
  const double all = static_cast<double>(std::accumulate(t.sent.begin(), t.sent.end(), 0LL));
  const double rate = static_cast<double>(span.sent) / (span.to_s - span.from_s);
  const double mean = all / (60 * t.minutes());
  std::string what = told ? "" : "no event at that time, ";
  const bool burst = rate >= kBurst * std::max(mean, rate_before(t, span));
  if (burst) what = "a burst of ";
  for (const sim::StageResult& s : run_.stages) {
    if (s.requests == 0) continue;
    const double from = (s.first_send - SimTime::zero()).to_seconds();
    const double to = (s.last_send - SimTime::zero()).to_seconds();
    if (burst && from >= span.from_s && from < span.to_s)
      what = "stage " + s.info.name + " begins with ";
    if (s.overloaded() && !lacks && from < span.to_s && to >= span.from_s) {
      what = "overload, ";
      break;
    }
  }
  const auto per_second = [](double r) { return number_text(with_digits(r, 3)); };
  return what.empty()
             ? what
             : what + per_second(rate) + " req/s where " + per_second(mean) + " are the mean";
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
  const Shortage during = later.empty() ? lack : shortage(span.from_s, until);
  if (during.worst.wanted > during.worst.ready) {
    servers = std::to_string(during.worst.ready) + " of " +
              counted(static_cast<std::size_t>(during.worst.wanted), "server") + " serve" +
              (lacks ? "" : " then");
  } else if (!servers_.empty()) {
    const std::int64_t ready = *ready_at(span.from_s);
    servers = ready == 0   ? "no server serves"
              : ready == 1 ? "the one server serves"
                           : "all " + std::to_string(ready) + " serve";
    if (most_ > ready) servers += ", of at most " + std::to_string(most_);
  }
  if (!servers.empty()) text += text.empty() ? servers : " (" + servers + ")";
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
  const Witness witness(scenario, run);
  sim::Timeline minutes = whole.timeline();
  const auto judge = [&](const sim::TimelineCounter& c, const std::string& load) {
    sim::Timeline own = c.timeline();
    own.goals = {.good = c.good(), .share = t.goals->share};
    for (MissedSpan& span : sim::missed_spans(own)) {
      MissedSpan first = span;
      first.to_s = span.from_s + own.bin_s;
      span.why = load + witness.tell(own, span, c.last_miss_s(first), c.last_miss_s(span));
      t.goals->missed.push_back(std::move(span));
    }
  };
  if (loads.empty()) judge(whole, "");
  for (const auto& [part, of_load] : loads)
    judge(of_load, printable(scenario.workload.mix[static_cast<std::size_t>(part)].name) + ": ");
  std::ranges::stable_sort(t.goals->missed, {}, &MissedSpan::from_s);
  minutes.goals = t.goals;
  run.summary.fleet.missed_minutes = t.goals->missed_minutes = minutes.count_missed();
}

}  // namespace routesim::tools
