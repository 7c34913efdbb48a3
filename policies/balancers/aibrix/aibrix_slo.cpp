// AIBrix's routing strategy slo, which is slo-least-load-pulling: pkg/plugins/gateway/queue/
// slo_queue.go, algorithms/{queue_router.go, slo.go, least_load.go} and pkg/cache/
// {model_gpu_profile.go, pending_load_provider.go, output_predictor.go, cache_trace.go} @e3e10f9e.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <unordered_map>

#include "policies/balancers/aibrix/aibrix_parts.h"

namespace routesim::policies {
namespace {

/// A request outranked by another one is tried again after that one has had its turn.
constexpr Duration kOutranked = Duration::microseconds(100);

/// SimpleOutputPredictor: lengths of recent answers by length of prompt, both as powers of two; a
/// draw from those of a prompt's own power. Without any: one token.
class OutputPredictor {
 public:
  void add(std::int64_t prompt, std::int64_t output, SimTime now) {
    // A slot takes 10 s, begins with the first answer after the one before, and is kept for 240 s.
    const std::int64_t slot = (now - SimTime::zero()) / kSlot;
    while (!slots_.empty() && slots_.front().slot <= slot - kKept) {
      for (const auto& [in, out] : slots_.front().answers) --counts_[in][out];
      slots_.pop_front();
    }
    if (slots_.empty() || slots_.back().slot != slot)
      slots_.push_back({.slot = slot, .answers = {}});
    slots_.back().answers.emplace_back(bucket(prompt), bucket(output));
    ++counts_[bucket(prompt)][bucket(output)];
  }
  std::int64_t predict(std::int64_t prompt, RandomStream& random) const {
    const auto& counts = counts_[bucket(prompt)];
    std::uint64_t all = 0;
    for (const std::uint64_t n : counts) all += n;
    if (all == 0) return 1;
    std::uint64_t left = random.below(all);
    std::size_t out = 0;
    for (; left >= counts[out]; ++out) left -= counts[out];
    return std::int64_t{1} << out;
  }

 private:
  static constexpr std::size_t kBuckets = 21;  // Up to 2^20 tokens.
  static constexpr Duration kSlot = Duration::seconds(10);
  static constexpr std::int64_t kKept = 24;
  static std::size_t bucket(std::int64_t tokens) {
    if (tokens <= 0) return 0;
    const auto power = std::llround(std::log2(static_cast<double>(tokens)));
    return std::min(kBuckets - 1, static_cast<std::size_t>(power));
  }
  struct Slot {
    std::int64_t slot = 0;
    std::vector<std::pair<std::size_t, std::size_t>> answers;
  };
  std::deque<Slot> slots_;
  std::array<std::array<std::uint64_t, kBuckets>, kBuckets> counts_{};
};

/// The values of a profile for requests of one kind; nothing where it has none.
class ProfileReader {
 public:
  explicit ProfileReader(const AibrixProfile& profile) : profile_(profile) {
    for (auto& axis : profile_.indexes)
      for (double& v : axis) v = std::log2(v);
  }
  std::optional<double> throughput(std::int64_t output, std::int64_t prompt) const {
    return value(profile_.tputs, output, prompt);
  }
  std::optional<double> latency(std::int64_t output, std::int64_t prompt) const {
    return value(profile_.e2e, output, prompt);
  }
  /// Seconds by which a request that starts now is expected to miss its goal (above 0) or to meet
  /// it. `draw` predicts a length anew wherever the product does.
  template <class Draw>
  std::optional<double> lateness(std::int64_t prompt, double waited, const Draw& draw) const {
    const std::int64_t output = draw();
    const AibrixSlos& slos = profile_.slos;
    std::optional<double> expected = latency(output, prompt);
    double target = slos.e2e;
    if (slos.tpot > 0) {
      target = slos.tpot * static_cast<double>(draw()) + slos.ttft;
    } else if (slos.ttft > 0) {
      target = slos.ttft;
      expected = value(profile_.ttft, output, prompt);
    } else if (slos.tpat > 0) {
      target = slos.tpat * static_cast<double>(prompt + draw());
    } else if (slos.e2e <= 0) {
      return std::nullopt;
    }
    if (!expected) return std::nullopt;
    return waited + *expected - target;
  }

 private:
  using Table = std::vector<std::vector<double>>;
  /// The nearest point of an axis, halfway to the upper one, on a logarithmic scale.
  static std::size_t nearest(const std::vector<double>& axis, std::int64_t tokens) {
    const double v = std::log2(static_cast<double>(tokens));
    const auto above = std::lower_bound(axis.begin(), axis.end(), v);
    if (above == axis.begin()) return 0;
    if (above == axis.end()) return axis.size() - 1;
    const auto i = static_cast<std::size_t>(above - axis.begin());
    if (*above == v) return i;
    return v < axis[i - 1] + (axis[i] - axis[i - 1]) * 0.5 ? i - 1 : i;
  }
  std::optional<double> value(const Table& table, std::int64_t output, std::int64_t prompt) const {
    const Table& axes = profile_.indexes;
    if (axes.size() < 2 || axes[0].empty() || axes[1].empty()) return std::nullopt;
    const std::size_t row = nearest(axes[0], output), column = nearest(axes[1], prompt);
    if (row >= table.size() || column >= table[row].size()) return std::nullopt;
    return table[row][column];
  }

  AibrixProfile profile_;
};

}  // namespace

std::string profile_fault(const AibrixProfile& p) {
  if (p.indexes.size() != 2 || p.indexes[0].empty() || p.indexes[1].empty())
    return "indexes must be two lists: output and prompt tokens";
  for (const std::vector<double>& axis : p.indexes)
    if (axis.front() <= 0 ||
        std::adjacent_find(axis.begin(), axis.end(), std::greater_equal<>()) != axis.end())
      return "each list of indexes must rise from above 0";
  const auto fits = [&p](const std::vector<std::vector<double>>& table) {
    return table.empty() || (table.size() == p.indexes[0].size() &&
                             std::all_of(table.begin(), table.end(), [&p](const auto& row) {
                               return row.size() == p.indexes[1].size();
                             }));
  };
  for (const auto* table : {&p.tputs, &p.e2e, &p.ttft, &p.tpot})
    if (!fits(*table))
      return "its tables must have a row per output and a column per prompt length";
  return {};
}

namespace {

/// A queue of requests by kind. The most urgent head goes first, to the pod of its best deployment
/// with the least load that has room.
class AibrixSlo final : public AibrixBalancer {
 public:
  AibrixSlo(const AibrixSettings& settings, const RandomStream& random)
      : AibrixBalancer(settings, random) {
    for (const AibrixProfile& p : settings.profiles) profiles_.emplace_back(p);
  }
  BalancerNeeds needs() const override {
    constexpr std::int64_t kAll = 1'000'000;
    return {.tried_per_endpoint = kAll};
  }
  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    AibrixBalancer::on_sent(pick, request);
    const auto profile = profile_of_[pick.endpoint];
    if (!profile) return;
    const double load = consumption(profiles_[*profile], request.prompt_tokens).value_or(0);
    load_[pods().number(pick.endpoint)] += load;
    sent_[request.id] = {.pod = pods().number(pick.endpoint), .load = load};
  }
  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) override {
    AibrixBalancer::on_completed(pick, outcome);
    if (outcome.output_tokens > 0)
      predictor_.add(outcome.prompt_tokens, outcome.output_tokens, outcome.now);
    last_end_ = outcome.now;
    const auto at = sent_.find(outcome.id);
    if (at == sent_.end()) return;
    load_[at->second.pod] -= at->second.load;
    sent_.erase(at);
  }

 private:
  using Kind = std::pair<std::int64_t, std::int64_t>;  ///< Powers of answer and prompt.
  struct Waiting {
    std::uint64_t id = 0;
    std::int64_t prompt = 0;
    SimTime since, asked;
  };
  struct Deployment {
    std::optional<std::size_t> profile;
    std::vector<std::uint32_t> pods;
  };
  /// A head of the queue, and deployments by lateness there.
  struct Candidate {
    const Waiting* request = nullptr;
    std::vector<std::pair<double, std::size_t>> ranks;
  };
  /// The next request to leave the queue. Without a pod it is refused.
  struct Next {
    const Waiting* request = nullptr;
    std::optional<std::uint32_t> pod;
  };
  enum class Room : std::uint8_t { kYes, kLater, kNever };

  void on_pods_changed() override {
    deployments_.clear();
    profile_of_.assign(size(), std::nullopt);
    std::map<std::string, std::size_t> numbers;
    for (const std::uint32_t i : ready()) {
      const std::string& name = endpoints()[i].deployment;
      const auto [at, is_new] = numbers.try_emplace(name, deployments_.size());
      if (is_new) {
        deployments_.emplace_back();
        for (std::size_t p = profiles_.size(); p-- > 0;)
          if (settings().profiles[p].gpu.empty() || settings().profiles[p].gpu == name)
            deployments_.back().profile = p;
      }
      deployments_[at->second].pods.push_back(i);
      profile_of_[i] = deployments_[at->second].profile;
    }
    for (const std::uint32_t i : ready())
      if (pods().number(i) >= load_.size()) load_.resize(pods().number(i) + std::size_t{1});
  }

  BalancerAnswer route(const BalancerRequest& request) override {
    const SimTime now = request.now;
    const auto [at, is_new] = kinds_.try_emplace(request.id);
    if (is_new) {
      at->second = {power(draw(request.prompt_tokens)), power(request.prompt_tokens)};
      queue_[at->second].push_back(
          {.id = request.id, .prompt = request.prompt_tokens, .since = now, .asked = now});
    }
    for (Waiting& w : queue_[at->second])
      if (w.id == request.id) w.asked = now;
    forget_gone(now);
    std::deque<Waiting>& own = queue_[at->second];
    if (terms().forced) {
      peek(now);  // Its draws.
      std::erase_if(own, [&](const Waiting& w) { return w.id == request.id; });
      kinds_.erase(at);
      return pick_of(*terms().forced);
    }
    if (own.front().id != request.id) return BalancerAnswer::held();
    const Next next = peek(now);
    if (next.request == nullptr) return BalancerAnswer::held();
    if (next.request->id != request.id) return BalancerAnswer::held(kOutranked);
    own.pop_front();
    kinds_.erase(at);
    if (!next.pod) return BalancerAnswer::refused(503);
    return pick_of(*next.pod);
  }
  /// Clients that gave up do not say so. Every other request is asked whenever one has ended.
  void forget_gone(SimTime now) {
    if (now == last_end_) return;
    for (auto& [kind, queue] : queue_)
      std::erase_if(queue, [this](const Waiting& w) {
        const bool gone = w.asked + kOutranked * 2 < last_end_;
        if (gone) kinds_.erase(w.id);
        return gone;
      });
  }

  /// SLOQueue.Peek.
  Next peek(SimTime now) {
    std::vector<Candidate> candidates;
    const Waiting* oldest = nullptr;
    bool ranked = true;
    for (const auto& [kind, queue] : queue_) {
      if (queue.empty()) continue;
      const Waiting& head = queue.front();
      if (oldest == nullptr || head.since < oldest->since) oldest = &head;
      candidates.push_back(candidate(head, now, ranked));
    }
    // One goal that is unknown, or no profile at all: first come, first served by least-request.
    if (!ranked || candidates.front().ranks.empty()) return {oldest, least_request()};
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.ranks.front().first > b.ranks.front().first;
                     });
    for (const Candidate& c : candidates) {
      Room room = Room::kLater;
      for (std::size_t i = 0; i < c.ranks.size() && (i == 0 || c.ranks[i].first <= 0); ++i) {
        std::uint32_t pod = 0;
        room = find_room(deployments_[c.ranks[i].second], c.request->prompt, pod);
        if (room == Room::kYes) return {c.request, pod};
      }
      if (room == Room::kNever) return {c.request, std::nullopt};
    }
    return {};
  }
  Candidate candidate(const Waiting& head, SimTime now, bool& ranked) {
    Candidate out{.request = &head, .ranks = {}};
    for (std::size_t d = 0; d < deployments_.size(); ++d) {
      if (!deployments_[d].profile) continue;
      const auto late = profiles_[*deployments_[d].profile].lateness(
          head.prompt, (now - head.since).to_seconds(), [&] { return draw(head.prompt); });
      if (late)
        out.ranks.emplace_back(*late, d);
      else
        ranked = false;
    }
    std::stable_sort(out.ranks.begin(), out.ranks.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return out;
  }
  /// leastLoadRouter in pull mode: the least loaded pod within its capacity, the last of equals.
  Room find_room(const Deployment& deployment, std::int64_t prompt, std::uint32_t& pod) {
    double least = 1;
    bool found = false, full = false;
    for (const std::uint32_t i : offered(deployment.pods)) {
      const auto used = consumption(profiles_[*deployment.profile], prompt);
      if (!used) continue;
      const double load = load_[pods().number(i)] + *used;
      full = full || (load > 1 && *used <= 1);  // Else not even an idle pod has room.
      if (load > least) continue;
      least = load;
      pod = i;
      found = true;
    }
    if (found) return Room::kYes;
    return full ? Room::kLater : Room::kNever;
  }
  /// The share of a pod that a request takes; nothing where the profile knows no throughput, or
  /// says that the goal cannot be met.
  std::optional<double> consumption(const ProfileReader& profile, std::int64_t prompt) {
    const std::int64_t output = draw(prompt);
    const auto throughput = profile.throughput(output, prompt);
    if (!throughput) return std::nullopt;
    const auto latency = profile.latency(output, prompt);
    if (!latency) return 0;
    if (*throughput == 0) return std::nullopt;
    return 1 / *throughput / *latency;
  }
  std::int64_t draw(std::int64_t prompt) { return predictor_.predict(prompt, random()); }
  static std::int64_t power(std::int64_t tokens) {
    return std::llround(std::log2(static_cast<double>(std::max<std::int64_t>(tokens, 1))));
  }

  struct Sent {
    std::uint32_t pod = 0;
    double load = 0;
  };
  std::vector<ProfileReader> profiles_;
  std::vector<Deployment> deployments_;
  std::vector<std::optional<std::size_t>> profile_of_;  ///< By endpoint.
  std::map<Kind, std::deque<Waiting>> queue_;
  std::unordered_map<std::uint64_t, Kind> kinds_;  ///< Of waiting requests.
  std::vector<double> load_;                       ///< By number of the pod.
  std::unordered_map<std::uint64_t, Sent> sent_;
  OutputPredictor predictor_;
  SimTime last_end_;
};

}  // namespace

void describe(Describer& d, AibrixSlos& s) {
  const RealRange seconds{.min = 0, .max = 1e9};
  constexpr std::string_view kWhy = "the gateway does not read it";
  field(d, no_effect("percentile", "Percentile of the goals.", kWhy), s.percentile,
        IntRange{0, 100});
  field(d, no_effect("tput", "Requests/s.", kWhy), s.tput, seconds);
  field(d, no_effect("tt", "Tokens/s.", kWhy), s.tt, seconds);
  field(d, {"e2e", "Seconds of a request; counts where the three below are 0."}, s.e2e, seconds);
  field(d, {"ttft", "Seconds to the first token; counts where tpot is 0, else beside it."}, s.ttft,
        seconds);
  field(d, {"tpat", "Seconds per token of prompt and answer; where tpot and ttft are 0."}, s.tpat,
        seconds);
  field(d, {"tpot", "Seconds per token of the answer."}, s.tpot, seconds);
}

void describe(Describer& d, AibrixProfile& p) {
  const RealRange any{.min = 0, .max = 1e12};
  constexpr std::string_view kWhy = "the gateway does not decide by it";
  field(d, {"gpu", "The deployment, a pool of the fleet; empty = every one."}, p.gpu);
  field(d, no_effect("cost", "Price per time.", kWhy), p.cost, any);
  field(d, {"indexes", "Two rising lists of tokens: of answers, of prompts."}, p.indexes,
        RealRange{.min = 0, .max = 1e12, .min_open = true});
  field(d, {"tputs", "Requests/s within the goals, a row an answer, a column a prompt."}, p.tputs,
        any);
  field(d, {"e2e", "Mean seconds of a request, likewise."}, p.e2e, any);
  field(d, {"ttft", "Mean seconds to the first token, likewise."}, p.ttft, any);
  field(d, no_effect("tpot", "Mean seconds per token, likewise.", kWhy), p.tpot, any);
  field(d, no_effect("created", "Unix time.", kWhy), p.created, any);
  field(d, {"slos", "The goals."}, p.slos);
}

std::unique_ptr<Balancer> make_aibrix_slo(const AibrixSettings& settings,
                                          const RandomStream& random) {
  return std::make_unique<AibrixSlo>(settings, random);
}

}  // namespace routesim::policies
