#include "sim/observe/timeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace routesim::sim {

namespace {

/// The chance that at most `good` of `sent` requests meet the goals where each does with `share`.
double chance_of(std::int64_t good, std::int64_t sent, double share) {
  if (share >= 1) return good < sent ? 0 : 1;
  const auto n = static_cast<double>(sent);
  double sum = 0;
  for (std::int64_t k = good; k >= 0; --k) {  // From the largest term down.
    const auto x = static_cast<double>(k);
    const double term = std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                                 x * std::log(share) + (n - x) * std::log1p(-share));
    sum += term;
    if (term < 1e-9 * sum || sum == 0) break;
  }
  return sum;
}

}  // namespace

std::vector<bool> Timeline::missed_bins() const {
  // A minute counts where something was asked in it, whichever of its bins that was.
  const std::size_t in_minute = std::max<std::size_t>(1, std::llround(60 / bin_s));
  const auto is_asked = [&](std::size_t minute) {
    const std::size_t end = std::min(sent.size(), (minute + 1) * in_minute);
    for (std::size_t i = minute * in_minute; i < end; ++i)
      if (answered[i] + failed[i] > 0) return true;
    return false;
  };
  std::vector<bool> bins(sent.size());
  for (const MissedSpan& span : goals ? goals->missed : std::vector<MissedSpan>{})
    for (auto i = static_cast<std::size_t>(std::llround(span.from_s / bin_s));
         i < bins.size() && static_cast<double>(i) * bin_s < span.to_s; ++i)
      bins[i] = is_asked(i / in_minute);
  return bins;
}

double Timeline::minutes() const {
  const auto some = [](std::int64_t n) { return n > 0; };
  const auto first = std::find_if(sent.begin(), sent.end(), some);
  const auto last = std::find_if(sent.rbegin(), sent.rend(), some).base();
  return first < last ? static_cast<double>(last - first) * bin_s / 60 : 0;
}

std::vector<MissedSpan> missed_spans(const Timeline& t) {
  std::vector<MissedSpan> found;
  if (!t.goals || !(t.goals->share > 0)) return found;
  constexpr double kChance = 1e-3, kLongestGap = 300;
  MissedSpan now;
  const auto close = [&] {
    if (now.sent >= kFewestJudged && chance_of(now.good, now.sent, t.goals->share) < kChance)
      found.push_back(now);
    now = {};
  };
  for (std::size_t i = 0; i < t.sent.size(); ++i) {
    const std::int64_t ended = t.answered[i] + t.failed[i], good = t.goals->good[i];
    if (ended == 0) continue;
    const double at = static_cast<double>(i) * t.bin_s;
    const double enough = t.goals->share * static_cast<double>(ended) - 1e-9;
    const bool met = static_cast<double>(good) >= enough;
    if (met || at > now.to_s + kLongestGap) close();
    if (met) continue;
    if (now.sent == 0) now.from_s = at;
    now.to_s = at + t.bin_s;
    now.sent += ended;
    now.good += good;
  }
  close();
  return found;
}

void TimelineCounter::on_done(SimTime sent, SimTime end, bool answered, bool good) {
  Bin& b = bin(sent);
  ++(answered ? b.answered : b.failed);
  if (answered && good)
    ++b.good;
  else
    b.last_miss = std::max(b.last_miss, end);
}

TimelineCounter::Bin& TimelineCounter::bin(SimTime at) {
  auto number = static_cast<std::size_t>(at.ns() / width_.ns());
  while (number >= (width_ < Duration::seconds(60) ? kMostBins : kMostMinutes)) {
    double_width();
    number = static_cast<std::size_t>(at.ns() / width_.ns());
  }
  if (number >= bins_.size()) bins_.resize(number + 1);
  return bins_[number];
}

void TimelineCounter::double_width() {
  for (std::size_t i = 1; i < bins_.size(); ++i) {
    const Bin from = std::exchange(bins_[i], {});
    Bin& to = bins_[i / 2];
    to.sent += from.sent;
    to.answered += from.answered;
    to.good += from.good;
    to.failed += from.failed;
    to.last_miss = std::max(to.last_miss, from.last_miss);
  }
  bins_.resize((bins_.size() + 1) / 2);
  width_ = width_ * 2;
}

TimelineCounter TimelineCounter::folded() const {
  TimelineCounter out = *this;
  while (out.bins_.size() > kMostBins) out.double_width();
  return out;
}

TimelineCounter TimelineCounter::in_bins_of(const TimelineCounter& whole) const {
  TimelineCounter out = *this;
  if (!whole.bins_.empty())
    (void)out.bin(SimTime::zero() + whole.width_ * std::int64_t(std::ssize(whole.bins_) - 1));
  return out;
}

std::vector<std::int64_t> TimelineCounter::column(std::int64_t Bin::*member) const {
  std::vector<std::int64_t> out;
  for (const Bin& b : bins_) out.push_back(b.*member);
  return out;
}

Timeline TimelineCounter::timeline() const {
  return {.bin_s = width_s(),
          .sent = column(&Bin::sent),
          .answered = column(&Bin::answered),
          .failed = column(&Bin::failed)};
}

std::vector<std::int64_t> TimelineCounter::good() const { return column(&Bin::good); }

double TimelineCounter::last_miss_s(const MissedSpan& span) const {
  const double width = width_s();
  SimTime last;
  for (std::size_t i = 0; i < bins_.size(); ++i)
    if (const double at = static_cast<double>(i) * width; at >= span.from_s && at < span.to_s)
      last = std::max(last, bins_[i].last_miss);
  return (last - SimTime::zero()).to_seconds();
}

}  // namespace routesim::sim
