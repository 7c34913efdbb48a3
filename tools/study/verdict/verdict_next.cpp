// The next steps after a run: commands that answer what its verdict leaves open.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/scalar_parse.h"
#include "tools/results/report.h"
#include "tools/study/verdict/contest.h"
#include "tools/study/verdict/verdict_parts.h"

namespace routesim::tools {

namespace {

/// A p99 so many times the mean has a tail worth explaining.
constexpr double kLongTail = 4;
constexpr std::int64_t kFirstReplications = 5;

class NextSteps {
 public:
  NextSteps(const PageRun& run, const Verdict& verdict) : run_(run), verdict_(verdict) {
    for (const VariantView& v : run.variants) scans_ = scans_ || !v.scan_of.empty();
  }

  std::vector<Step> steps() {
    if (run_.interrupted) {
      add("Run it to its end", again(""));
      return std::move(steps_);
    }
    more_seeds();
    more_load();
    fewer_servers();
    failures();
    slowest_request();
    return std::move(steps_);
  }

 private:
  void add(std::string why, std::string command) {
    steps_.push_back({.why = std::move(why), .command = std::move(command)});
  }

  std::string input() const { return run_.command.input.empty() ? "SCENARIO" : run_.command.input; }
  /// The same run with one option more.
  std::string again(const std::string& option) const {
    const RunCommand& c = run_.command;
    return "routesim run " + input() + c.variants + c.options + c.scan + option;
  }
  /// The same without the scan.
  std::string scan(const std::string& variants, const std::string& option) const {
    return "routesim run " + input() + variants + run_.command.options + option;
  }

  /// Suggests more seeds when chance may have decided between two variants.
  void more_seeds() {
    if (!verdict_.close) return;
    if (run_.replications < 2)
      add("One run is one draw of the load; intervals over " + std::to_string(kFirstReplications) +
              " seeds say what is chance",
          again(" --replications " + std::to_string(kFirstReplications)));
    else if (verdict_.winner.empty())
      add("More seeds narrow the intervals",
          again(" --replications " + std::to_string(4 * run_.replications)));
  }

  /// Variants that share a bound on their load, in requests/s.
  using Bounds = std::vector<std::pair<double, std::vector<std::string>>>;

  static void add_bound(Bounds& bounds, double bound, const std::string& variant) {
    auto at = std::ranges::find(bounds, bound, &Bounds::value_type::first);
    if (at == bounds.end()) at = bounds.insert(at, {bound, {}});
    at->second.push_back(variant);
  }
  /// ` of a, b up to 4 req/s, of c up to 8 req/s`.
  static std::string bounds_text(const Bounds& bounds, const std::string& direction) {
    std::string text;
    for (const auto& [bound, variants] : bounds)
      text += (text.empty() ? " of " : ", of ") + listed(variants) + direction +
              human(bound, Unit::kRequestsPerSecond);
    return text;
  }

  /// The number of its servers changes, so that a stage says little of another rate.
  bool changes(const std::string& variant) const {
    return std::ranges::any_of(
        run_.variants, [&](const VariantView& v) { return v.name == variant && !v.pools.empty(); });
  }

  /// A ladder that ends before the knee, or begins behind it.
  void more_load() {
    Bounds open, low;
    for (const Knee& knee : verdict_.knees) {
      if (knee.capacity) continue;
      if (knee.last_held && !knee.first_overloaded && !knee.too_short)
        add_bound(open, *knee.last_held, knee.variant);
      if (knee.first_overloaded && !knee.last_held && !knee.too_short && !changes(knee.variant))
        add_bound(low, *knee.first_overloaded, knee.variant);
    }
    const auto [least, most] = scanned();
    if (!open.empty())
      add("No knee" + bounds_text(open, " up to ") + "; scan higher rates",
          scan(run_.command.variants,
               (most.empty() ? " --rate 2x" : " --rate " + scaled(most, 1.5, 2)) + fleets()));
    if (!low.empty())
      add("No held rate" + bounds_text(low, " down to ") + "; scan lower rates",
          scan(run_.command.variants,
               (least.empty() ? " --rate 0.25x,0.5x" : " --rate " + scaled(least, 0.25, 0.5)) +
                   fleets()));
  }

  /// The least and the most of the scanned rates, or of their factors; empty without a scan.
  std::pair<std::string, std::string> scanned() const {
    const std::string& scan = run_.command.scan;
    const std::size_t at = scan.find(" --rate ");
    if (at == std::string::npos) return {};
    std::vector<std::string> rates;
    std::istringstream list(scan.substr(at + 8, scan.find(' ', at + 8) - at - 8));
    for (std::string rate; std::getline(list, rate, ',');) rates.push_back(rate);
    const auto [least, most] = std::ranges::minmax_element(
        rates, {}, [](const std::string& rate) { return std::strtod(rate.c_str(), nullptr); });
    return {*least, *most};
  }

  /// `20,40` of 10 times 2 and 4, `0.3x` of 0.2x; with three digits, so that none is noise.
  static std::string scaled(const std::string& rate, double one, double other) {
    std::string text;
    for (const double factor : {one, other}) {
      const double value = factor * std::strtod(rate.c_str(), nullptr);
      const double digits = std::pow(10, std::max(0.0, 2 - std::floor(std::log10(value))));
      text.append(text.empty() ? "" : ",").append(number_text(std::round(value * digits) / digits));
      if (rate.ends_with('x')) text += 'x';
    }
    return text;
  }

  /// The part of a scan that says how many servers.
  std::string fleets() const {
    const std::size_t at = run_.command.scan.find(" --replicas ");
    return at == std::string::npos ? "" : run_.command.scan.substr(at);
  }

  /// The winner, or the first that holds the load, has room where another one is overloaded.
  void fewer_servers() {
    if (scans_ || verdict_.overload.empty() || !run_.command.scan.empty()) return;
    for (const VariantView& v : run_.variants) {
      const auto servers = static_cast<std::int64_t>(v.servers.size());
      if (!verdict_.winner.empty() && v.name != verdict_.winner) continue;
      if (!holds_all(v) || servers < 2 || pools_of(v) != 1 || !v.pools.empty()) continue;
      const std::int64_t half = std::max<std::int64_t>(1, servers / 2);
      const std::int64_t most = std::max<std::int64_t>(1, servers * 3 / 4);
      add(v.name + " may need fewer servers than " + std::to_string(servers),
          scan(" --variant " + shell_word(v.name),
               " --replicas " + std::to_string(half) +
                   (most > half ? "," + std::to_string(most) : "")));
      return;
    }
  }

  static std::int64_t pools_of(const VariantView& v) {
    std::int64_t pools = 0;
    for (const auto& [path, value] : v.resolved)
      pools += path.starts_with("cluster.pools[") && path.ends_with("].replicas") ? 1 : 0;
    return pools;
  }

  void failures() {
    for (const VariantView& v : run_.variants) {
      const Datum* failed = v.summary.find("failed_requests");
      if (failed == nullptr || failed->value == 0) continue;
      add("Each failed request of " + v.name + " with its reason",
          again(" --records requests.csv"));
      return;
    }
  }

  /// `explain` has no option of a scan.
  void slowest_request() {
    if (scans_ || !run_.command.scan.empty()) return;
    std::vector<const VariantView*> variants;  // The winner first.
    for (const VariantView& v : run_.variants)
      variants.insert(v.name == verdict_.winner ? variants.begin() : variants.end(), &v);
    for (const VariantView* const candidate : variants) {
      const VariantView& v = *candidate;
      const Datum* mean = v.summary.find("ttft.mean");
      const Datum* p99 = v.summary.find("ttft.p99");
      if (mean == nullptr || p99 == nullptr || p99->value < kLongTail * mean->value) continue;
      if (!overload_of(v).empty()) continue;  // The queue explains its slowest request.
      add("The p99 of " + v.name + "'s first token is " +
              human(p99->value / mean->value, Unit::kNone) +
              " times the mean; how its slowest request was routed",
          "routesim explain " + input() + " --variant " + shell_word(v.name) + " --request worst" +
              (run_.command.options.find(" --seed ") == std::string::npos
                   ? ""
                   : " --set seed=" + run_.seed));
      return;
    }
  }

  const PageRun& run_;
  const Verdict& verdict_;
  bool scans_ = false;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> next_steps(const PageRun& run, const Verdict& verdict) {
  return NextSteps(run, verdict).steps();
}

}  // namespace routesim::tools
