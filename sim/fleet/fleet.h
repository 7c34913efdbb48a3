// The life of the servers: what starts, serves, ends and fails, and when the router learns of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "sim/fleet/election.h"
#include "sim/fleet/fleet_config.h"
#include "sim/fleet/fleet_result.h"
#include "sim/fleet/roll_out.h"
#include "sim/fleet/start_up.h"
#include "sim/scaling/autoscaler.h"

namespace routesim::sim {

/// A pool, as far as its servers live and end.
struct FleetPool {
  std::string name;
  std::int64_t replicas = 0;  ///< At the start; these serve at once.
  std::int64_t places = 0;    ///< The most at once, those that end included.
  StartUpTimes start_up;
  TerminationConfig termination;
  std::optional<AutoscalerConfig> autoscaler;
  std::string most_evicted, min_available;  ///< A PodDisruptionBudget; neither: there is none.
};

/// How a server ends.
enum class ServerEnd : std::uint8_t {
  kKilled,      ///< Its connections are reset.
  kTerminated,  ///< The same, and the process had time to clean up.
  kVanished     ///< Nobody answers any more, and nobody says so.
};

/// What a fleet does to its servers and routers. Servers are numbered through, pool by pool.
class FleetActions {
 public:
  virtual ~FleetActions() = default;
  /// An engine with empty caches begins to serve.
  virtual void start(std::uint32_t server, SimTime now) = 0;
  /// The engine is gone, with all that was in it.
  virtual void stop(std::uint32_t server, ServerEnd how, SimTime now) = 0;
  /// The server's machine is gone, whether or not the server was there.
  virtual void lose_machine(std::uint32_t server, SimTime now) = 0;
  /// The router learns that a server is there, under another name where it is a new pod; or that it
  /// no longer is.
  virtual void join(std::uint32_t server, std::int64_t pod, SimTime now) = 0;
  virtual void leave(std::uint32_t server, SimTime now) = 0;
  virtual void set_pace(std::uint32_t server, double factor, SimTime now) = 0;
  virtual void set_events_lost(std::uint32_t server, bool lost, SimTime now) = 0;
  virtual void set_scrapes_lost(std::uint32_t server, bool lost, SimTime now) = 0;
  /// KV moves to and from the server, or does not.
  virtual void set_link(std::uint32_t server, bool works, SimTime now) = 0;
  virtual void stop_router(std::uint32_t process, SimTime now) = 0;
  virtual void start_router(std::uint32_t process, SimTime now) = 0;
  /// From now on requests go to this process.
  virtual void lead_router(std::uint32_t process, SimTime now) = 0;
  /// Requests in a server.
  virtual std::int64_t requests_in(std::uint32_t server) const = 0;
  /// What the autoscaler of a pool sees.
  virtual const FleetMetrics& metrics(std::uint32_t pool, SimTime now) = 0;
};

/// Owns the state of every server, the ReplicaSets that want them, and what is due. Its owner calls
/// tick() at the times that it books. O(log n) per change, plus O(servers of a pool) where a number
/// of servers changes. One thread.
class Fleet {
 public:
  static constexpr std::size_t kMostMarks = 2'000;
  /// From a machine that vanishes to a node that is NotReady: node-monitor-grace-period of
  /// Kubernetes v1.32 and later (40 s before).
  static constexpr Duration kNodeGrace = Duration::seconds(50);

  /// Servers [0, replicas) of each pool serve. `actions` outlives this. Pools of events exist.
  Fleet(std::vector<FleetPool> pools, std::vector<FleetEventConfig> events, Discovery discovery,
        std::uint64_t seed, FleetActions& actions, std::function<void(SimTime)> book);

  /// One of so many router processes serves; see Election. Call before begin().
  void elect_leader(std::size_t processes, bool drains) {
    election_.emplace(processes, drains, seed_);
  }
  /// Books the first event. Call once, when the actions may be called.
  void begin();
  /// Does everything that is due.
  void tick(SimTime now);
  /// The server answers requests.
  bool serves(std::uint32_t server) const {
    return is_serving(servers_[server].state) && !servers_[server].terminated;
  }
  /// Something is due that may bring a server: anything but a failure. O(what is due).
  bool may_grow() const { return is_due_besides({What::kFails}); }
  /// Nothing is due but looks of autoscalers, which may go on for ever, and failures.
  bool only_looks() const { return !is_due_besides({What::kFails, What::kScale}); }
  /// Results over time begin here: a reported stage begins. Later calls do nothing.
  void begin_report(SimTime now);
  /// Something has happened to a server.
  void mark(SimTime at, std::string what, std::uint32_t server);
  FleetResult take_result(SimTime end);
  /// A sentence for each query that mostly failed, with the name of its autoscaler's pool.
  std::vector<std::string> failing_queries() const;
  std::size_t servers() const { return servers_.size(); }
  /// The pods of the Deployment that began in a pool, as the API server has them, and the server
  /// that has the place of one.
  void list_pods(std::uint32_t pool, SimTime now, std::vector<FleetPod>& out) const;
  static std::uint32_t server_of_pod(std::int64_t pod) {
    return static_cast<std::uint32_t>(pod & 0xffffffff);
  }

  /// An autoscaler's or a person's word to the Deployment that began in a pool.
  void set_replicas(std::uint32_t pool, std::int64_t replicas, SimTime now);
  std::int64_t replicas(std::uint32_t pool) const { return deployments_[pool].replicas; }
  std::int64_t ready(std::uint32_t pool) const { return tallies_[pool].ready; }
  /// Ready servers of the Deployment that began in a pool. O(servers).
  std::int64_t ready_of(std::uint32_t deployment) const;
  /// Since then each Deployment has had a server that serves. One that a roll-out fills counts with
  /// the Deployment that it is of.
  bool serves_since(SimTime at) const { return serves_since_ <= at; }
  /// A router that notices failures by itself meets a server that is gone.
  void find_dead(std::uint32_t server, SimTime now) {
    if (servers_[server].known_pod >= 0) leave(server, now);
  }

 private:
  enum class State : std::uint8_t {
    kAbsent,
    kStarting,
    kReady,
    kEnding,
    kDown,
    kClosing,  ///< As kEnding, but it never served: its preStop hook sleeps.
    kLost,     ///< Its machine is gone, and Kubernetes takes it for ready.
    kVanished  ///< Kubernetes knows.
  };
  static bool is_serving(State s) { return s == State::kReady || s == State::kEnding; }
  /// Its pod was asked to end.
  static bool is_ending(State s) { return s == State::kEnding || s == State::kClosing; }
  /// The pod exists and is not about to end: its ReplicaSet counts it.
  static bool is_counted(State s) {
    return s == State::kStarting || s == State::kReady || s == State::kDown || s == State::kLost ||
           s == State::kVanished;
  }
  /// For Kubernetes.
  static bool is_ready(State s) { return s == State::kReady || s == State::kLost; }
  struct Server {
    State state = State::kAbsent;
    std::uint32_t pool = 0;
    std::int64_t epoch = 0;        ///< What was due before is void when it grows.
    std::uint32_t deployment = 0;  ///< That owns its pod.
    std::int64_t revision = 0;     ///< Of its ReplicaSet.
    std::int64_t pod = 0;          ///< Grows with every pod in this place.
    std::int64_t crashes = 0;      ///< Of this pod in a row.
    std::uint64_t draws = 0;       ///< Of failures in this place.
    std::int64_t known_pod = -1;   ///< That the router knows; -1 = none.
    SimTime since{};               ///< In its state; from SIGTERM on, since then.
    SimTime created{};             ///< The pod.
    SimTime container{};           ///< Its process starts then. Pending until its first one does.
    bool terminated = false;       ///< SIGTERM has come.
  };
  /// What is due. Those down to kFails are void when the server's epoch has grown; kEvict to
  /// kEventsBack, when there is another pod.
  enum class What : std::uint8_t {
    kReady,        ///< A server that starts is ready.
    kAvailable,    ///< It has been so for the minReadySeconds of its Deployment.
    kNotReady,     ///< Kubernetes notices that a machine is gone.
    kTerminate,    ///< The preStop hook is over.
    kLook,         ///< A server that drains may be empty.
    kKill,         ///< The grace period is over.
    kReplace,      ///< The pod of a lost machine is given up.
    kFails,        ///< An event at a rate.
    kEvict,        ///< The disruption budget may allow it now.
    kJoin,         ///< The router learns that a pod is there,
    kLeave,        ///< or gone.
    kNormal,       ///< A slow server is no longer slow.
    kLinkBack,     ///< KV moves again.
    kScrapesBack,  ///< Metrics are read again.
    kEventsBack,   ///< KV events arrive again.
    kRouterBack,
    kRouterEnds,  ///< One that drains.
    kElected,     ///< Void when there is another term.
    kHappens,     ///< An event at a time.
    kScale        ///< An autoscaler looks.
  };
  struct Due {
    SimTime at;
    std::uint64_t order = 0;
    What what = What::kHappens;
    std::uint32_t subject = 0;  ///< A server, a router or an event.
    std::int64_t epoch = 0;     ///< Or the pod.
    std::uint32_t event = 0;
    bool operator<(const Due& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  /// An event that lasts. Several may overlap; the one that began last holds.
  struct Spell {
    What end = What::kNormal;
    std::uint32_t subject = 0;
    std::uint32_t event = 0;
  };
  struct ReplicaSet {
    std::uint32_t pool = 0;
    std::int64_t revision = 0;  ///< Grows with every new one.
    RollOutSet size{};          ///< `available` is as of the last step.
  };
  /// What a pool is to have. While a roll-out is under way there are two ReplicaSets.
  struct Deployment {
    std::int64_t replicas = 0;
    bool is_target = false;        ///< Roll-outs fill its pool, and it never has servers itself.
    std::vector<ReplicaSet> sets;  ///< By age, but the one with the present configuration is last.
    std::string max_surge, max_unavailable;
    Duration min_ready{};
    bool recreates = false;
  };
  struct Scaler {
    std::uint32_t pool = 0;
    Autoscaler autoscaler;
  };
  struct Tally {
    std::int64_t servers = 0, ready = 0;
    double server_seconds = 0, ready_seconds = 0;
    SimTime since{};
    bool is_full = false;  ///< No place was left for the last server that was wanted.
    FleetPoolResult result{};
  };

  void look(std::uint32_t scaler, SimTime now);
  void book(SimTime at, What what, std::uint32_t subject, std::uint32_t event = 0);
  bool is_due_besides(std::initializer_list<What> kinds) const;
  std::int64_t validity(What what, std::uint32_t subject) const;
  void apply(const Due& due, SimTime now);
  void apply_to_router(const Due& due, SimTime now);
  void end_if_drained(std::uint32_t server, SimTime now);
  void join(std::uint32_t server, SimTime now);
  void leave(std::uint32_t server, SimTime now);
  void happen(std::uint32_t event, SimTime now);
  void happen_to(std::uint32_t event, std::uint32_t server, SimTime now);
  void begin_spell(What end, std::uint32_t subject, std::uint32_t event,
                   std::optional<Duration> lasts, SimTime now);
  void restart_router(std::uint32_t event, SimTime now);
  void end_router(std::uint32_t process, std::uint32_t event, SimTime now);
  void begin_router(std::uint32_t process, SimTime now);
  void book_term();
  void recover(const Due& due, SimTime now);
  std::optional<std::uint32_t> end_spell(const Due& due);
  std::optional<std::uint32_t> lasting(What end, std::uint32_t subject) const;
  void begin_roll_out(const FleetEventConfig& e, SimTime now);
  void crash(std::uint32_t server, std::optional<Duration> repair, SimTime now);
  void vanish(std::uint32_t server, SimTime now);
  void evict(std::uint32_t server, bool asks_again, SimTime now);
  bool budget_allows(std::uint32_t server, SimTime now);
  bool create(const ReplicaSet& set, std::uint32_t deployment, SimTime now);
  void become_ready(std::uint32_t server, SimTime now);
  void terminate(std::uint32_t server, SimTime now);
  void end(std::uint32_t server, SimTime now, ServerEnd how = ServerEnd::kKilled);
  void draw_failures(std::uint32_t server, SimTime now);
  void draw_failure(std::uint32_t event, std::uint32_t server, SimTime now);
  void reconcile(Deployment& d, SimTime now);
  bool resize(Deployment& d, bool is_scaled, SimTime now) const;
  std::int64_t counted(const ReplicaSet& set) const;
  std::int64_t available(const ReplicaSet& set, SimTime now) const;
  bool is_available(const Server& s, SimTime now) const;
  void fill(const ReplicaSet& set, std::uint32_t deployment, SimTime now);
  void reuse_place(const Server& s, SimTime now);
  void set_state(std::uint32_t server, State state, SimTime now);
  static void count_time(Tally& tally, SimTime now);
  void note_who_serves(SimTime now);
  void add_point(std::uint32_t pool, SimTime now);
  void note(SimTime at, std::string what, std::string subject);
  void note_in_vain(std::uint32_t event, SimTime at, const std::string& why);
  Deployment& owner_of(const Server& s) { return deployments_[s.deployment]; }
  std::uint32_t index_of(const Deployment& d) const {
    return static_cast<std::uint32_t>(&d - deployments_.data());
  }
  std::uint32_t deployment_of(std::uint32_t pool) const;
  std::uint32_t pool_of(std::string_view name) const;
  std::vector<std::uint32_t> targets(std::uint32_t event) const;
  Duration drawn(std::uint32_t event, std::uint32_t server, std::uint64_t turn,
                 Duration mean) const;

  std::vector<FleetPool> pools_;
  std::vector<FleetEventConfig> events_;
  Discovery discovery_;
  std::uint64_t seed_;
  FleetActions& actions_;
  std::function<void(SimTime)> book_;
  std::vector<std::uint32_t> first_;  ///< By pool: its first server.
  std::vector<Server> servers_;
  std::vector<Deployment> deployments_;  ///< By the pool in which they began.
  std::vector<Tally> tallies_;           ///< By pool.
  std::vector<Scaler> scalers_;
  std::optional<Election> election_;
  std::vector<Due> due_;       ///< A heap.
  std::vector<Spell> spells_;  ///< In the order of their beginning.
  std::uint64_t order_ = 0;
  SimTime booked_ = SimTime::max();
  bool reconciling_ = false;
  SimTime serves_since_ = SimTime::max();  ///< The end of time while it is not so.
  std::optional<SimTime> reported_since_;
  FleetResult result_;
};

}  // namespace routesim::sim
