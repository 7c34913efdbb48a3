#include "policies/balancers/production_stack/production_stack.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include "policies/balancers/kit/announced_blocks.h"
#include "policies/balancers/kit/hashes.h"
#include "policies/balancers/kit/named_servers.h"
#include "policies/balancers/kit/ring.h"
#include "policies/balancers/kit/text_blocks.h"

namespace routesim::policies {
namespace {

constexpr std::int64_t kStackTrieChunk = 128;  ///< Characters (prefix/hashtrie.py).
constexpr int kStackRingPoints = 160;          ///< Per server (uhashring 2.3).

/// Servers that discovery lists, and the router's own statistics of them.
class ProductionStackBalancer : public Balancer {
 public:
  explicit ProductionStackBalancer(const ProductionStackSettings& settings) : settings_(settings) {}

  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    Balancer::set_endpoints(endpoints);
    servers_.set(endpoints);
    listed_.clear();
    for (std::uint32_t i = 0; i < size(); ++i)
      if (endpoints[i].healthy) listed_.push_back(i);
    sorted_ = listed_;
    std::stable_sort(sorted_.begin(), sorted_.end(),
                     [this](std::uint32_t a, std::uint32_t b) { return name(a) < name(b); });
    on_servers_changed();
  }
  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    Balancer::on_sent(pick, request);
    if (!counts_starts()) return;
    const std::uint32_t server = servers_.number(pick.endpoint);
    if (starts_.size() <= server) starts_.resize(server + std::size_t{1});
    starts_[server].seen = true;
    starts_[server].times.push_back(request.now);
  }

 protected:
  virtual void on_servers_changed() {}
  virtual bool counts_starts() const { return true; }
  const ProductionStackSettings& settings() const { return settings_; }
  const std::string& name(std::uint32_t i) const { return endpoints()[i].name; }
  /// Indices of healthy endpoints that may be chosen, as discovery lists them.
  const std::vector<std::uint32_t>& listed() const { return offered(listed_); }
  /// The router remembers servers by URL.
  const NamedServers& servers() const { return servers_; }
  /// The same as listed(), by URL.
  const std::vector<std::uint32_t>& sorted() const { return offered(sorted_); }

  /// The first server without any request, else the fewest starts in the window (_qps_routing).
  std::uint32_t least_started(SimTime now) {
    std::uint32_t best = listed().front();
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (const std::uint32_t i : listed()) {
      const std::uint32_t server = servers_.number(i);
      if (server >= starts_.size() || !starts_[server].seen) return i;
      std::deque<SimTime>& times = starts_[server].times;
      while (!times.empty() && times.front() + settings_.request_stats_window < now)
        times.pop_front();
      if (times.size() >= fewest) continue;
      fewest = times.size();
      best = i;
    }
    return best;
  }

 private:
  struct Starts {
    bool seen = false;
    std::deque<SimTime> times;
  };
  ProductionStackSettings settings_;
  std::vector<std::uint32_t> listed_, sorted_;
  NamedServers servers_;
  std::vector<Starts> starts_;  ///< By number.
};

class StackRoundRobin final : public ProductionStackBalancer {
 public:
  using ProductionStackBalancer::ProductionStackBalancer;
  BalancerAnswer pick(const BalancerRequest& /*request*/) override {
    const std::vector<std::uint32_t>& turns = offered(turns_);
    if (turns.empty()) return std::nullopt;
    return pick_of(turns[(*next_)++ % turns.size()]);
  }

 private:
  bool counts_starts() const override { return false; }
  /// Each set of servers has a count of its own; after 1,024 sets all are forgotten.
  void on_servers_changed() override {
    std::vector<std::string> names;
    turns_.clear();
    for (const std::uint32_t i : sorted())  // Equal URLs are one server.
      if (names.empty() || name(i) != names.back()) {
        names.push_back(name(i));
        turns_.push_back(i);
      }
    if (counts_.size() >= 1024 && !counts_.contains(names)) counts_.clear();
    next_ = &counts_[std::move(names)];
  }
  std::vector<std::uint32_t> turns_;  ///< Endpoints by URL, each URL once.
  std::map<std::vector<std::string>, std::uint64_t> counts_;
  std::uint64_t* next_ = nullptr;
};

/// Sessions stay where the ring puts them; other requests go to the least started server.
class StackSession : public ProductionStackBalancer {
 public:
  explicit StackSession(const ProductionStackSettings& settings)
      : ProductionStackBalancer(settings), key_(settings.session_key) {}

  BalancerNeeds needs() const override {
    if (key_.empty()) return {};
    return {.identity = true, .session_headers = {key_}};
  }
  BalancerAnswer pick(const BalancerRequest& request) override {
    if (listed().empty()) return std::nullopt;
    return by_session(request);
  }

 protected:
  BalancerPick by_session(const BalancerRequest& request) {
    const auto session = key_.empty() ? std::nullopt : request.header(key_);
    if (!session) return pick_of(least_started(request.now));
    return pick_of(ring_.owner(ring_.locate_after(md5(*session)),
                               [this](std::uint32_t i) { return offered(i); }));
  }

  void on_servers_changed() override {
    ring_.clear();
    if (key_.empty()) return;
    for (const std::uint32_t i : listed())
      for (int w = 0; w < kStackRingPoints; ++w)
        ring_.add(md5(name(i) + "-" + std::to_string(w)), i);
    ring_.close();
  }

 private:
  std::string key_;
  Ring<Md5Number> ring_;  ///< Keys belong to the first point that is strictly greater (uhashring).
};

class StackPrefixAware final : public ProductionStackBalancer {
 public:
  StackPrefixAware(const ProductionStackSettings& settings, const RandomStream& random)
      : ProductionStackBalancer(settings), random_(random) {}

  BalancerNeeds needs() const override { return {.text = true}; }
  BalancerAnswer pick(const BalancerRequest& request) override {
    if (listed().empty()) return std::nullopt;
    const auto chunks = chunks_.cut(request.text, block_units(request.text, kStackTrieChunk), true);
    const std::int64_t matched = find_best(chunks) * kStackTrieChunk;
    std::uint32_t chosen = 0;
    if (matched < settings().prefix_min_match_length)
      chosen = least_started(request.now);
    else if (matched == 0)
      chosen = listed()[random_.below(listed().size())];
    else
      chosen = best_[random_.below(best_.size())];
    chosen = settle(chosen);
    trie_.add(chunks, servers().number(chosen), request.now);
    return pick_of(chosen);
  }

 private:
  /// The longest match in chunks, and who has it.
  std::int64_t find_best(std::span<const std::uint64_t> chunks) {
    std::int64_t longest = 0;
    best_.clear();
    for (const BlockStore::Match& m : trie_.match(chunks)) {
      const auto i = servers().index(m.server);
      if (!i || !endpoints()[*i].healthy || !offered(*i) || m.blocks < longest) continue;
      if (m.blocks > longest) best_.clear();
      longest = m.blocks;
      best_.push_back(*i);
    }
    return longest;
  }

  RandomStream random_;
  TextBlocks chunks_;
  BlockStore trie_{std::numeric_limits<std::size_t>::max()};  ///< Nothing is ever evicted.
  std::vector<std::uint32_t> best_;
};

class StackKvAware : public StackSession {
 public:
  using StackSession::StackSession;
  BalancerNeeds needs() const override {
    BalancerNeeds needs = StackSession::needs();
    needs.block_keys = true;
    needs.kv_events = true;
    // It looks up `prompt` of the body, which a chat does not have: routing_logic.py@0.1.12.
    needs.chat_text = needs.chat_text_with_prefill = ChatText::kNone;
    return needs;
  }
  PrefixIndex* prefix_index() override { return &announced_.index(); }
  BalancerAnswer pick(const BalancerRequest& request) override {
    if (listed().empty()) return std::nullopt;
    const std::optional<std::uint32_t> chosen = choose(look_up(request), request);
    if (!chosen) return by_session(request);
    if (!has_url_of(settle(*chosen))) return BalancerAnswer::refused(500);
    return pick_of(*chosen);
  }

 protected:
  struct Found {
    std::uint32_t endpoint;
    std::int64_t tokens;  ///< End of the last chunk that it is named for.
  };
  /// Nothing: by session.
  virtual std::optional<std::uint32_t> choose(const std::vector<Found>& found,
                                              const BalancerRequest& request) {
    if (found.empty() || !is_candidate(found.front().endpoint)) return std::nullopt;
    const std::int64_t missing = request.prompt_tokens - found.front().tokens;
    if (missing > settings().kv_aware_threshold) return std::nullopt;
    return found.front().endpoint;
  }
  bool is_candidate(std::uint32_t i) const { return i != AnnouncedBlocks::kNobody && offered(i); }

 private:
  void on_servers_changed() override {
    StackSession::on_servers_changed();
    announced_.set_endpoints(*this);
  }
  /// The places of a prompt's chunks by LMCache's controller, in the order of the first chunk of
  /// each. It names one server per chunk: the one registered first among those that hold it
  /// (LMCache v1/cache_controller, `lookup`).
  std::vector<Found> look_up(const BalancerRequest& request) {
    const std::int64_t block = std::max<std::int64_t>(1, endpoints()[listed().front()].block_size);
    const auto step =
        static_cast<std::size_t>(std::max<std::int64_t>(1, settings().lmcache_chunk_size / block));
    std::vector<Found> found;
    for (std::size_t end = step; end <= request.block_keys.size(); end += step) {
      const auto holders = announced_.index().holders(request.block_keys[end - 1]);
      if (holders.empty()) break;
      EndpointId named = holders.front().endpoint;
      for (const HolderEntry& h : holders) named = std::min(named, h.endpoint);
      const std::uint32_t first = announced_.endpoint(named);
      const auto at = std::find_if(found.begin(), found.end(),
                                   [first](const Found& f) { return f.endpoint == first; });
      const auto tokens = static_cast<std::int64_t>(end) * block;
      if (at == found.end())
        found.push_back({first, tokens});
      else
        at->tokens = tokens;
    }
    return found;
  }
  /// The router asks for the instances of the servers that are listed when it meets an unknown one,
  /// and keeps what it learns (KvawareRouter.route_request, instance_id_to_ip @0.1.12). An instance
  /// that is still unknown is a KeyError.
  bool has_url_of(std::uint32_t i) {
    if (!named_.contains(servers().number(i)))
      for (const std::uint32_t j : listed()) named_.insert(servers().number(j));
    return named_.contains(servers().number(i));
  }
  AnnouncedBlocks announced_;      ///< The controller knows all holders.
  std::set<std::uint32_t> named_;  ///< Numbers of servers.
};

class StackLoadAware final : public StackKvAware {
 public:
  using StackKvAware::StackKvAware;
  BalancerNeeds needs() const override {
    BalancerNeeds needs = StackKvAware::needs();
    needs.chat_text = needs.chat_text_with_prefill = ChatText::kMessages;
    return needs;
  }

 private:
  std::optional<std::uint32_t> choose(const std::vector<Found>& found,
                                      const BalancerRequest& request) override {
    if (found.empty()) return std::nullopt;
    double sum = 0;
    for (const std::uint32_t i : listed()) sum += in_flight()[i];
    const double mean = sum / static_cast<double>(listed().size());
    const auto tokens = static_cast<double>(std::max<std::int64_t>(request.prompt_tokens, 1));
    matched_.assign(size(), 0);
    for (const Found& f : found)
      if (is_candidate(f.endpoint))
        matched_[f.endpoint] = std::min(f.tokens, request.prompt_tokens);
    std::optional<std::uint32_t> best;
    double best_score = 0;
    for (const std::uint32_t i : sorted()) {
      const double load = (in_flight()[i] - mean) / std::max(1.0, mean);
      const double score =
          static_cast<double>(matched_[i]) / tokens - settings().loadaware_beta * load;
      if (best && score <= best_score) continue;
      best = i;
      best_score = score;
    }
    return best;
  }
  std::vector<std::int64_t> matched_;  ///< Tokens, by endpoint.
};

/// disaggregated_prefill_orchestrated: the router sends the prefill request itself.
class StackDisaggregatedPrefill final : public ProductionStackBalancer {
 public:
  using ProductionStackBalancer::ProductionStackBalancer;
  BalancerAnswer pick(const BalancerRequest& /*request*/) override {
    const std::vector<std::uint32_t>&prefill = offered(prefill_), &decode = offered(decode_);
    if (prefill.empty() || decode.empty()) return BalancerAnswer::refused(503);
    const std::uint32_t computes = prefill[next_prefill_++ % prefill.size()];
    return pick_of(computes, decode[next_decode_++ % decode.size()]);
  }

 private:
  bool counts_starts() const override { return false; }
  void on_servers_changed() override {
    prefill_.clear();
    decode_.clear();
    for (const std::uint32_t i : sorted()) {
      if (endpoints()[i].role == ServerRole::kPrefill) prefill_.push_back(i);
      if (endpoints()[i].role == ServerRole::kDecode) decode_.push_back(i);
    }
  }
  std::vector<std::uint32_t> prefill_, decode_;  ///< By URL.
  std::uint64_t next_prefill_ = 0, next_decode_ = 0;
};

template <class T>
constexpr auto make = make_policy<Balancer, T, ProductionStackSettings>;

}  // namespace

void describe(Describer& d, ProductionStackSettings& s) {
  release_field(d, s.release);
  field(d,
        {"session_key",
         "Header that names a session. session does not start without one; kvaware, loadaware: "
         "none where absent."},
        s.session_key);
  field(d,
        {"request_stats_window",
         "Requests that started within this time count where the least busy server is taken."},
        s.request_stats_window, DurationRange{});
  field(d,
        {"kv_aware_threshold",
         "kvaware: tokens of a prompt that may be missing where the cache is followed."},
        s.kv_aware_threshold, IntRange{0, 1'000'000'000});
  field(d,
        {"prefix_min_match_length",
         "prefixaware: characters that must match, else the least busy server is taken."},
        s.prefix_min_match_length, IntRange{0, 1'000'000'000});
  field(d, {"loadaware_beta", "loadaware: weight of the load against the cached share."},
        s.loadaware_beta, RealRange{.min = 0, .max = 1e6});
  field(d,
        {"lmcache_chunk_size",
         "kvaware, loadaware: tokens of a chunk that LMCache's controller knows of."},
        s.lmcache_chunk_size, IntRange{1, 1'000'000});
}

void ProductionStackFamily::add_faults(const ProductionStackSettings& s, std::string_view balancer,
                                       std::vector<SettingFault>& faults) {
  if (balancer == "production-stack-session" && s.session_key.empty())
    faults.push_back({"production_stack.session_key",
                      "is missing: the router does not start with this policy and without its "
                      "--session-key",
                      "for example production_stack: {session_key: x-user-id}"});
}

std::unique_ptr<Balancer> make_production_stack(ProductionStackPolicy policy,
                                                const ProductionStackSettings& settings,
                                                const RandomStream& random) {
  static constexpr std::array kMakers = {make<StackRoundRobin>,  make<StackSession>,
                                         make<StackPrefixAware>, make<StackKvAware>,
                                         make<StackLoadAware>,   make<StackDisaggregatedPrefill>};
  static_assert(kMakers.size() == ProductionStackFamily::policies.size());
  return kMakers[static_cast<std::size_t>(policy)](settings, random);
}

}  // namespace routesim::policies
