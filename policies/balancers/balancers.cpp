#include "policies/balancers/balancers.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "policies/index/block_keys.h"

namespace routesim::policies {
namespace {

constexpr std::uint32_t kGone = 0xffffffff;

/// Strict rotation over the endpoints in their given order.
class RoundRobin final : public Balancer {
 public:
  std::optional<BalancerPick> pick(const BalancerRequest& request) override {
    for (std::size_t tries = 0; tries < size(); ++tries) {
      const auto i = static_cast<std::uint32_t>(next_++ % size());
      if (serves(i, request.adapter)) return pick_of(i);
    }
    return std::nullopt;
  }

 private:
  std::uint64_t next_ = 0;
};

/// Uniform over the endpoints that serve the request.
class Random final : public Balancer {
 public:
  explicit Random(RandomStream random) : random_(random) {}
  std::optional<BalancerPick> pick(const BalancerRequest& request) override {
    if (request.adapter.empty()) {
      if (size() == 0) return std::nullopt;
      return pick_of(static_cast<std::uint32_t>(random_.below(size())));
    }
    able_.clear();
    for (std::uint32_t i = 0; i < size(); ++i)
      if (serves(i, request.adapter)) able_.push_back(i);
    if (able_.empty()) return std::nullopt;
    return pick_of(able_[random_.below(able_.size())]);
  }

 private:
  RandomStream random_;
  std::vector<std::uint32_t> able_;
};

/// A Kubernetes Service: kube-proxy chooses a backend when a connection opens, and every request on
/// that connection follows. A client takes its most recently idle connection first, as HTTP pools
/// do. The Service knows nothing of adapters.
class K8sService final : public Balancer {
 public:
  K8sService(ServiceMode mode, std::int64_t reuse, RandomStream random)
      : mode_(mode), reuse_(reuse), random_(random) {}

  std::optional<BalancerPick> pick(const BalancerRequest&) override {
    if (size() == 0) return std::nullopt;
    while (!idle_.empty()) {
      const std::uint32_t c = idle_.back();
      idle_.pop_back();
      if (const auto i = index_of(connections_[c].server)) {
        BalancerPick pick = pick_of(*i);
        pick.connection = c;
        return pick;
      }
      free_.push_back(c);  // Its server is gone, so the connection is closed.
    }
    return open();
  }

  void on_sent(const BalancerPick& pick) override {
    Balancer::on_sent(pick);
    ++connections_[pick.connection].used;
  }

  void on_completed(const BalancerPick& pick) override {
    Balancer::on_completed(pick);
    const bool more = connections_[pick.connection].used < reuse_;
    (more ? idle_ : free_).push_back(pick.connection);
  }

 private:
  struct Connection {
    std::uint32_t server = 0;
    std::uint32_t used = 0;  ///< Requests sent over it.
  };

  BalancerPick open() {
    const std::uint64_t backend =
        mode_ == ServiceMode::kIptables ? random_.below(size()) : rotation_++ % size();
    BalancerPick pick = pick_of(static_cast<std::uint32_t>(backend));
    if (free_.empty()) {
      pick.connection = static_cast<std::uint32_t>(connections_.size());
      connections_.emplace_back();
    } else {
      pick.connection = free_.back();
      free_.pop_back();
    }
    connections_[pick.connection] = {.server = pick.server, .used = 0};
    return pick;
  }

  ServiceMode mode_;
  std::int64_t reuse_;
  RandomStream random_;
  std::uint64_t rotation_ = 0;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> idle_;  // Open and unused, most recent last.
  std::vector<std::uint32_t> free_;  // Closed: numbers to reuse.
};

/// KubeAI's LeastLoad: fewest requests in flight. Upstream breaks ties by iterating a hash map,
/// which is arbitrary; here ties are uniform.
class LeastLoad final : public Balancer {
 public:
  explicit LeastLoad(RandomStream random) : random_(random) {}
  std::optional<BalancerPick> pick(const BalancerRequest& request) override {
    const auto load = in_flight();
    const bool all = request.adapter.empty();
    std::uint32_t least = kGone;
    std::uint32_t ties = 0;
    if (all) {  // Two plain passes, which compilers turn into vector code.
      for (const std::uint32_t l : load) least = std::min(least, l);
      for (const std::uint32_t l : load) ties += l == least ? 1 : 0;
    } else {
      for (std::uint32_t i = 0; i < load.size(); ++i) {
        if (!serves(i, request.adapter)) continue;
        ties = load[i] < least ? 1 : ties + (load[i] == least ? 1 : 0);
        least = std::min(least, load[i]);
      }
    }
    if (ties == 0) return std::nullopt;
    std::uint64_t chosen = ties == 1 ? 0 : random_.below(ties);
    for (std::uint32_t i = 0; i < load.size(); ++i) {
      if (load[i] != least || (!all && !serves(i, request.adapter))) continue;
      if (chosen-- == 0) return pick_of(i);
    }
    return std::nullopt;
  }

 private:
  RandomStream random_;
};

/// KubeAI's PrefixHash: consistent hashing with bounded loads.
class PrefixHash final : public Balancer {
 public:
  explicit PrefixHash(const BalancerSettings& o)
      : replication_(static_cast<std::uint32_t>(o.hash_replication)),
        prefix_chars_(static_cast<std::uint32_t>(o.prefix_char_length)),
        factor_(static_cast<double>(o.mean_load_factor) / 100.0) {}

  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    Balancer::set_endpoints(endpoints);
    ring_ = HashRing(endpoints, replication_);
  }

  std::optional<BalancerPick> pick(const BalancerRequest& request) override {
    if (ring_.size() == 0) return std::nullopt;
    key_.assign(request.adapter);
    key_ += first_code_points(request.prefix, prefix_chars_);
    std::size_t at = ring_.locate(xxh64(key_));
    std::optional<std::uint32_t> fallback;  // The first suitable endpoint, whatever its load.
    for (std::size_t step = 0; step < ring_.size(); ++step) {
      // A long walk means few endpoints qualify: make sure that at least one does.
      if (step == kPatience && !anyone_accepts(request.adapter, fallback.has_value())) break;
      const std::uint32_t i = ring_.owner(at);
      if (serves(i, request.adapter)) {
        if (!fallback) fallback = i;
        if (accepts(i)) return pick_of(i);
      }
      if (++at == ring_.size()) at = 0;
    }
    if (!fallback) return std::nullopt;
    return pick_of(*fallback);
  }

 private:
  static constexpr std::size_t kPatience = 64;

  bool accepts(std::uint32_t i) const {
    return chwbl_load_ok(in_flight()[i], total_in_flight(), size(), factor_);
  }
  // Whether going on can change the result: someone would accept, or (while there is no fallback
  // yet) someone is at least suitable.
  bool anyone_accepts(std::string_view adapter, bool have_fallback) const {
    for (std::uint32_t i = 0; i < size(); ++i)
      if (serves(i, adapter) && (!have_fallback || accepts(i))) return true;
    return false;
  }

  std::uint32_t replication_;
  std::uint32_t prefix_chars_;
  double factor_;
  HashRing ring_;
  std::string key_;
};

}  // namespace

// ---- The interface
// --------------------------------------------------------------------------------

void Balancer::set_endpoints(std::span<const BalancerEndpoint> endpoints) {
  std::vector<std::uint32_t> load(index_of_.size(), 0);  // By server, wherever it is kept now.
  for (std::uint32_t s = 0; s < index_of_.size(); ++s)
    load[s] = index_of_[s] == kGone ? gone_load_[s] : in_flight_[index_of_[s]];
  endpoints_.assign(endpoints.begin(), endpoints.end());
  std::fill(index_of_.begin(), index_of_.end(), kGone);
  in_flight_.assign(endpoints.size(), 0);
  server_of_.assign(endpoints.size(), 0);
  for (std::uint32_t i = 0; i < endpoints.size(); ++i) {
    const auto next = static_cast<std::uint32_t>(index_of_.size());
    const auto [at, is_new] = servers_.emplace(endpoints[i].name, next);
    if (is_new) {
      index_of_.push_back(kGone);
      load.push_back(0);
    }
    const std::uint32_t s = at->second;
    server_of_[i] = s;
    if (index_of_[s] == kGone) index_of_[s] = i;
    in_flight_[i] = load[s];
  }
  gone_load_.assign(index_of_.size(), 0);
  for (std::uint32_t s = 0; s < index_of_.size(); ++s)
    if (index_of_[s] == kGone) gone_load_[s] = load[s];
  // KubeAI internal/loadbalancer/group.go (July 2025) deletes an endpoint that left, so that one
  // which returns under its name starts at 0.
  std::erase_if(servers_, [this](const auto& named) { return index_of_[named.second] == kGone; });
}

std::optional<std::uint32_t> Balancer::index_of(std::uint32_t server) const {
  if (index_of_[server] == kGone) return std::nullopt;
  return index_of_[server];
}

bool Balancer::serves(std::uint32_t i, std::string_view adapter) const {
  if (adapter.empty()) return true;
  const auto& list = endpoints_[i].adapters;
  return std::find(list.begin(), list.end(), adapter) != list.end();
}

void Balancer::on_sent(const BalancerPick& pick) {
  const std::uint32_t i = index_of_[pick.server];
  ++(i == kGone ? gone_load_[pick.server] : in_flight_[i]);
  ++total_;
}

void Balancer::on_completed(const BalancerPick& pick) {
  const std::uint32_t i = index_of_[pick.server];
  std::uint32_t& load = i == kGone ? gone_load_[pick.server] : in_flight_[i];
  ROUTESIM_CHECK(load > 0, "a request completed that was not in flight");
  --load;
  --total_;
}

void describe(Describer& d, BalancerSettings& c) {
  field(d, {"service_mode", "k8s-service: kube-proxy's mode."}, c.service_mode);
  field(d,
        {"requests_per_connection",
         "k8s-service: requests a client sends over one connection "
         "before it opens another."},
        c.requests_per_connection, IntRange{1, 1'000'000'000});
  field(d, {"prefix_char_length", "prefix-hash: characters of the prompt that are hashed."},
        c.prefix_char_length, IntRange{0, 1'000'000});
  field(d, {"mean_load_factor", "prefix-hash: percent of the mean load an endpoint may reach."},
        c.mean_load_factor, IntRange{100, 100'000});
  field(d, {"hash_replication", "prefix-hash: ring points per endpoint."}, c.hash_replication,
        IntRange{1, 100'000});
}

std::unique_ptr<Balancer> make_balancer(BalancerKind kind, const BalancerSettings& settings,
                                        std::uint64_t seed, std::uint64_t entity) {
  ROUTESIM_CHECK(settings.requests_per_connection >= 1 && settings.hash_replication >= 1 &&
                     settings.mean_load_factor >= 100,
                 "balancer settings are within their described bounds");
  const RandomStream random(seed, Stream::kBalancer, entity);
  switch (kind) {
    case BalancerKind::kEndpointPicker:
      break;
    case BalancerKind::kRoundRobin:
      return std::make_unique<RoundRobin>();
    case BalancerKind::kRandom:
      return std::make_unique<Random>(random);
    case BalancerKind::kK8sService:
      return std::make_unique<K8sService>(settings.service_mode, settings.requests_per_connection,
                                          random);
    case BalancerKind::kLeastLoad:
      return std::make_unique<LeastLoad>(random);
    case BalancerKind::kPrefixHash:
      return std::make_unique<PrefixHash>(settings);
  }
  ROUTESIM_CHECK(false, "an endpoint picker is a Scheduler, not a balancer");
  return nullptr;
}

// ---- KubeAI's request side
// ------------------------------------------------------------------------

std::string_view first_code_points(std::string_view text, std::size_t code_points) {
  std::size_t at = 0;
  for (; code_points > 0 && at < text.size(); --code_points) {
    const auto lead = static_cast<unsigned char>(text[at]);
    std::size_t length = lead < 0x80   ? 1
                         : lead < 0xc2 ? 0
                         : lead < 0xe0 ? 2
                         : lead < 0xf0 ? 3
                         : lead < 0xf5 ? 4
                                       : 0;
    for (std::size_t k = 1; k < length; ++k)
      if (at + k >= text.size() || (static_cast<unsigned char>(text[at + k]) & 0xc0) != 0x80)
        length = 0;
    at += std::max<std::size_t>(length, 1);
  }
  return text.substr(0, at);
}

std::string_view prefix_source(std::span<const ChatMessage> messages) {
  for (const ChatMessage& m : messages)
    if (m.role == "user") return m.content;
  return {};
}

ModelAndAdapter split_model_adapter(std::string_view model_field) {
  const std::size_t at = model_field.find('_');
  if (at == std::string_view::npos) return {.model = model_field, .adapter = {}};
  return {.model = model_field.substr(0, at), .adapter = model_field.substr(at + 1)};
}

bool chwbl_load_ok(std::uint64_t load, std::uint64_t total, std::size_t n, double factor) {
  if (total == 0) return true;
  const double mean = static_cast<double>(total + 1) / static_cast<double>(n);
  return static_cast<double>(load) <= mean * factor;
}

HashRing::HashRing(std::span<const BalancerEndpoint> endpoints, std::uint32_t replication) {
  struct Point {
    std::uint64_t hash;
    std::uint32_t owner;
  };
  std::vector<Point> points;
  points.reserve(endpoints.size() * replication);
  for (std::uint32_t e = 0; e < endpoints.size(); ++e)
    for (std::uint32_t i = 0; i < replication; ++i)
      points.push_back({xxh64(endpoints[e].name + std::to_string(i)), e});
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.hash < b.hash; });
  // Two points with one hash: the map upstream keeps the last writer.
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i + 1 < points.size() && points[i + 1].hash == points[i].hash) continue;
    hashes_.push_back(points[i].hash);
    owners_.push_back(points[i].owner);
  }
}

std::size_t HashRing::locate(std::uint64_t hash) const {
  const auto at = std::lower_bound(hashes_.begin(), hashes_.end(), hash);
  return at == hashes_.end() ? 0 : static_cast<std::size_t>(at - hashes_.begin());
}

}  // namespace routesim::policies
