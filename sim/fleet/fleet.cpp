#include "sim/fleet/fleet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace routesim::sim {

namespace {

/// Until the pods of such a node are given up: the toleration that every pod gets
/// (node.kubernetes.io/unreachable, tolerationSeconds 300).
constexpr Duration kUnreachable = Duration::seconds(300);
/// kubectl drain asks again after this time where a budget forbids the eviction.
constexpr Duration kEvictAgain = Duration::seconds(5);
/// How often a server with --shutdown-timeout looks whether it is empty.
constexpr Duration kDrainLook = Duration::milliseconds(100);
constexpr Duration kRouterAway = Duration::seconds(5);
/// A Deployment's bounds where nothing else is said.
constexpr const char* kQuarter = "25%";

/// The kubelet starts a container again at once, then after 10 s, 20 s, … 300 s, and forgets after
/// ten minutes that it served (pkg/kubelet/kubelet.go: MaxContainerBackOff, and client-go's
/// util/flowcontrol/backoff.go, v1.34).
Duration back_off(std::int64_t crashes) {
  if (crashes <= 1) return Duration::zero();
  const std::int64_t doublings = std::min<std::int64_t>(crashes - 2, 5);
  return Duration::seconds(std::min<std::int64_t>(10 << doublings, 300));
}
constexpr Duration kForgetsCrashes = Duration::seconds(600);

double seconds_of(SimTime at) { return static_cast<double>(at.ns()) / 1e9; }

/// The words for what a kind of event does to a server; empty for kinds that are about none.
constexpr std::array<const char*, EnumNames<FleetEventKind>::value.size()> kFates = {
    "crash", "lose its machine", "be drained",          "be slow", "lose its KV events", "", "",
    "",      "lose its link",    "no longer be scraped"};

double slowness(const FleetEventConfig& e) { return e.factor.value_or(2); }

/// The end of the clock lies behind everything that is due.
SimTime later(SimTime now, Duration by) { return by < kEndOfTime - now ? now + by : kEndOfTime; }

}  // namespace

Fleet::Fleet(std::vector<FleetPool> pools, std::vector<FleetEventConfig> events,
             Discovery discovery, std::uint64_t seed, FleetActions& actions,
             std::function<void(SimTime)> book)
    : pools_(std::move(pools)),
      events_(std::move(events)),
      discovery_(discovery),
      seed_(seed),
      actions_(actions),
      book_(std::move(book)) {
  for (std::uint32_t p = 0; p < pools_.size(); ++p) {
    const FleetPool& pool = pools_[p];
    first_.push_back(static_cast<std::uint32_t>(servers_.size()));
    const bool is_target = pool.replicas == 0 && !pool.name.empty() &&
                           std::ranges::count(events_, pool.name, &FleetEventConfig::to) > 0;
    deployments_.push_back({.replicas = pool.replicas,
                            .is_target = is_target,
                            .sets = {{.pool = p, .size = {.spec = pool.replicas}}},
                            .max_surge = kQuarter,
                            .max_unavailable = kQuarter});
    tallies_.push_back({.servers = pool.replicas, .ready = pool.replicas});
    if (pool.autoscaler) scalers_.push_back({p, Autoscaler(*pool.autoscaler, SimTime::zero())});
    FleetPoolResult& result = tallies_.back().result;
    result.pool = pool.name;
    result.most_servers = result.least_ready = pool.replicas;
    add_point(p, SimTime::zero());
    for (std::int64_t i = 0; i < pool.places; ++i)
      servers_.push_back({.state = i < pool.replicas ? State::kReady : State::kAbsent,
                          .pool = p,
                          .deployment = p,
                          .known_pod = i < pool.replicas ? 0 : -1});
  }
  note_who_serves(SimTime::zero());
}

void Fleet::begin() {
  for (std::uint32_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s].state == State::kReady)
      draw_failures(s, SimTime::zero());
    else
      actions_.leave(s, SimTime::zero());
  }
  for (std::uint32_t e = 0; e < events_.size(); ++e)
    if (events_[e].at) book(SimTime::zero() + *events_[e].at, What::kHappens, e);
  for (std::uint32_t i = 0; i < scalers_.size(); ++i)
    book(scalers_[i].autoscaler.next_look(), What::kScale, i);
}

void Fleet::look(std::uint32_t scaler, SimTime now) {
  Scaler& s = scalers_[scaler];
  const std::optional<std::int32_t> replicas =
      s.autoscaler.look(now, actions_.metrics(s.pool, now));
  if (replicas) set_replicas(s.pool, *replicas, now);
  book(s.autoscaler.next_look(), What::kScale, scaler);
}

std::vector<std::string> Fleet::failing_queries() const {
  std::vector<std::string> out;
  for (const Scaler& s : scalers_)
    for (const std::string& said : s.autoscaler.failing_queries())
      out.push_back("autoscaler of " + pools_[s.pool].name + ": " + said);
  return out;
}

// A pod is Pending until its image is there, and Running from then on. One that was asked to end is
// ready until its preStop hook is over.
void Fleet::list_pods(std::uint32_t pool, SimTime now, std::vector<FleetPod>& out) const {
  for (std::uint32_t i = 0; i < servers_.size(); ++i) {
    const Server& s = servers_[i];
    if (s.deployment != pool || s.state == State::kAbsent) continue;
    FleetPod& pod = out.emplace_back();
    pod.id = s.pod << 32 | i;
    pod.state.ready = serves(i) || s.state == State::kLost;
    pod.state.terminating = is_ending(s.state);
    pod.state.started = s.created;
    pod.state.ready_changed = s.since;
    if (s.state == State::kStarting && now < s.container) pod.state.phase = HpaPodPhase::kPending;
  }
}

// What must still hold when it is due.
std::int64_t Fleet::validity(What what, std::uint32_t subject) const {
  if (what <= What::kFails) return servers_[subject].epoch;
  if (what <= What::kEventsBack) return servers_[subject].pod;
  return what == What::kElected ? election_->number() : 0;
}

void Fleet::book(SimTime at, What what, std::uint32_t subject, std::uint32_t event) {
  if (at >= kEndOfTime) return;
  due_.push_back({.at = at,
                  .order = order_++,
                  .what = what,
                  .subject = subject,
                  .epoch = validity(what, subject),
                  .event = event});
  std::push_heap(due_.begin(), due_.end());
  if (due_.front().at >= booked_) return;
  booked_ = due_.front().at;
  book_(booked_);
}

bool Fleet::is_due_besides(std::initializer_list<What> kinds) const {
  return std::any_of(due_.begin(), due_.end(), [&](const Due& due) {
    return std::count(kinds.begin(), kinds.end(), due.what) == 0 &&
           due.epoch == validity(due.what, due.subject);
  });
}

void Fleet::tick(SimTime now) {
  if (now < booked_) return;  // A tick that others have booked.
  while (!due_.empty() && due_.front().at <= now) {
    std::pop_heap(due_.begin(), due_.end());
    const Due due = due_.back();
    due_.pop_back();
    // A leave is of the pod that the router knows, whatever is in its place by now.
    if (due.what == What::kLeave || due.epoch == validity(due.what, due.subject)) apply(due, now);
  }
  booked_ = SimTime::max();
  if (due_.empty()) return;
  booked_ = due_.front().at;
  book_(booked_);
}

void Fleet::apply(const Due& due, SimTime now) {
  const std::uint32_t server = due.subject;
  switch (due.what) {
    case What::kReady:
      become_ready(server, now);
      break;
    case What::kNotReady:
      set_state(server, State::kVanished, now);
      [[fallthrough]];
    case What::kAvailable:
      reconcile(owner_of(servers_[server]), now);
      break;
    case What::kTerminate:
      servers_[server].terminated = true;
      servers_[server].since = now;
      end_if_drained(server, now);
      break;
    case What::kLook:
      end_if_drained(server, now);
      break;
    case What::kKill:
    case What::kReplace:
      end(server, now);
      break;
    case What::kEvict:
      evict(server, true, now);
      break;
    case What::kFails:
      happen_to(due.event, server, now);
      break;
    case What::kJoin:
      join(server, now);
      break;
    case What::kLeave:
      if (discovery_.by_checks && servers_[server].state == State::kReady &&
          servers_[server].pod == due.epoch)
        break;
      if (servers_[server].known_pod == due.epoch) leave(server, now);
      // The container was back before anyone had heard that it was gone.
      if (later(servers_[server].since, discovery_.join) <= now) join(server, now);
      break;
    case What::kNormal:
    case What::kLinkBack:
    case What::kScrapesBack:
    case What::kEventsBack:
      recover(due, now);
      break;
    case What::kRouterBack:
    case What::kRouterEnds:
    case What::kElected:
      apply_to_router(due, now);
      break;
    case What::kHappens:
      happen(due.subject, now);
      break;
    case What::kScale:
      look(due.subject, now);
      break;
  }
}

void Fleet::apply_to_router(const Due& due, SimTime now) {
  if (due.what == What::kRouterBack) {
    if (!end_spell(due)) begin_router(due.subject, now);
  } else if (due.what == What::kRouterEnds) {
    if (election_->end_drain(due.subject)) end_router(due.subject, due.event, now);
  } else {
    election_->serve(due.subject);
    actions_.lead_router(due.subject, now);
    note(now, "leads", "router " + std::to_string(due.subject));
  }
}

// A server is as before, unless the same lasts for another reason.
void Fleet::recover(const Due& due, SimTime now) {
  const std::uint32_t server = due.subject;
  const std::optional<std::uint32_t> left = end_spell(due);
  if (due.what == What::kNormal) {
    actions_.set_pace(server, left ? slowness(events_[*left]) : 1, now);
    if (!left) mark(now, "is as fast as before", server);
  } else if (due.what == What::kLinkBack && !left) {
    actions_.set_link(server, true, now);
    mark(now, "has its link back", server);
  } else if (due.what == What::kScrapesBack && !left) {
    actions_.set_scrapes_lost(server, false, now);
    mark(now, "is scraped again", server);
  } else if (!left) {
    actions_.set_events_lost(server, false, now);
    mark(now, "has its KV events heard again", server);
  }
  draw_failure(due.event, server, now);
}

// ---- Events. ------------------------------------------------------------------------------------

void Fleet::happen(std::uint32_t event, SimTime now) {
  const FleetEventConfig& e = events_[event];
  switch (e.kind) {
    case FleetEventKind::kRouterRestart:
      restart_router(event, now);
      return;
    case FleetEventKind::kScale:
      set_replicas(deployment_of(pool_of(e.pool)), *e.replicas, now);
      return;
    case FleetEventKind::kRollOut:
      begin_roll_out(e, now);
      return;
    default:
      const std::vector<std::uint32_t> servers = targets(event);
      if (servers.empty()) note_in_vain(event, now, "it has no server that serves");
      for (const std::uint32_t server : servers) happen_to(event, server, now);
  }
}

// A process without leader election ends at once. An event without a number means the leader.
void Fleet::restart_router(std::uint32_t event, SimTime now) {
  const FleetEventConfig& e = events_[event];
  const std::uint32_t first = election_ ? election_->serves() : 0;
  const auto process = e.router ? static_cast<std::uint32_t>(*e.router) : first;
  const bool runs = !lasting(What::kRouterBack, process);
  if (election_ && runs) {
    election_->end(process, e.graceful, now);
    book_term();
    if (e.graceful && election_->drains()) {
      if (!election_->begin_drain(process)) return;
      note(now, "drains", "router " + std::to_string(process));
      book(later(now, Election::kDrain), What::kRouterEnds, process, event);
      return;
    }
    election_->end_drain(process);
  }
  end_router(process, event, now);
}

void Fleet::end_router(std::uint32_t process, std::uint32_t event, SimTime now) {
  if (!lasting(What::kRouterBack, process)) actions_.stop_router(process, now);
  note(now, "restarts", "router " + std::to_string(process));
  begin_spell(What::kRouterBack, process, event, events_[event].lasts.value_or(kRouterAway), now);
}

void Fleet::begin_router(std::uint32_t process, SimTime now) {
  actions_.start_router(process, now);
  note(now, "is back", "router " + std::to_string(process));
  if (election_) election_->begin(process, now);
  book_term();
}

void Fleet::book_term() {
  if (const auto term = election_ ? election_->take_term() : std::nullopt)
    book(term->ready, What::kElected, term->leader);
}

// The servers that an event names, or one of those that serve.
std::vector<std::uint32_t> Fleet::targets(std::uint32_t event) const {
  const FleetEventConfig& e = events_[event];
  const std::uint32_t pool = pool_of(e.pool);
  std::vector<std::uint32_t> found;
  if (!e.servers.empty()) {
    for (const std::int64_t number : e.servers)
      found.push_back(first_[pool] + static_cast<std::uint32_t>(number));
    return found;
  }
  for (std::uint32_t s = 0; s < servers_.size(); ++s)
    if (servers_[s].pool == pool && servers_[s].state == State::kReady) found.push_back(s);
  if (found.empty()) return found;
  RandomStream random(seed_, Stream::kFleet, mix64(event));
  return {found[random.below(found.size())]};
}

void Fleet::happen_to(std::uint32_t event, std::uint32_t server, SimTime now) {
  const FleetEventConfig& e = events_[event];
  const Server& s = servers_[server];
  const bool is_alone = e.kind == FleetEventKind::kCrash && now <= s.container &&
                        (s.state == State::kStarting || s.state == State::kDown);
  if (s.state == State::kAbsent || s.state >= State::kLost || is_alone) {
    const std::string lacks = is_alone ? "has no process" : "is not there";
    mark(now, lacks + " when it should " + kFates[static_cast<std::size_t>(e.kind)], server);
    return;
  }
  switch (e.kind) {
    case FleetEventKind::kCrash: {
      std::optional<Duration> repair = e.lasts;
      if (repair && e.mean_time_between) repair = drawn(event, server, ~s.draws, *e.lasts);
      crash(server, repair, now);
      break;
    }
    case FleetEventKind::kNodeLoss:
      vanish(server, now);
      break;
    case FleetEventKind::kDrain:
      evict(server, false, now);
      break;
    case FleetEventKind::kSlow:
      actions_.set_pace(server, slowness(e), now);
      mark(now, "is slow", server);
      begin_spell(What::kNormal, server, event, e.lasts, now);
      break;
    case FleetEventKind::kKvEventsLost:
      actions_.set_events_lost(server, true, now);
      mark(now, "loses its KV events", server);
      begin_spell(What::kEventsBack, server, event, e.lasts, now);
      break;
    case FleetEventKind::kScrapesLost:
      actions_.set_scrapes_lost(server, true, now);
      mark(now, "is not scraped", server);
      begin_spell(What::kScrapesBack, server, event, e.lasts, now);
      break;
    case FleetEventKind::kLinkLost:
      actions_.set_link(server, false, now);
      mark(now, "loses its link", server);
      begin_spell(What::kLinkBack, server, event, e.lasts, now);
      break;
    default:
      break;
  }
}

void Fleet::begin_spell(What end, std::uint32_t subject, std::uint32_t event,
                        std::optional<Duration> lasts, SimTime now) {
  spells_.push_back({end, subject, event});
  if (lasts) book(later(now, *lasts), end, subject, event);
}

// The event whose spell of that kind still lasts.
std::optional<std::uint32_t> Fleet::end_spell(const Due& due) {
  const auto ended = std::find_if(spells_.begin(), spells_.end(), [&due](const Spell& s) {
    return s.end == due.what && s.subject == due.subject && s.event == due.event;
  });
  ROUTESIM_CHECK(ended != spells_.end(), "what ends has begun");
  spells_.erase(ended);
  return lasting(due.what, due.subject);
}

std::optional<std::uint32_t> Fleet::lasting(What end, std::uint32_t subject) const {
  const auto last = std::find_if(spells_.rbegin(), spells_.rend(), [&](const Spell& s) {
    return s.end == end && s.subject == subject;
  });
  return last == spells_.rend() ? std::nullopt : std::optional(last->event);
}

void Fleet::begin_roll_out(const FleetEventConfig& e, SimTime now) {
  Deployment& d = deployments_[deployment_of(pool_of(e.pool))];
  const std::string& name = pools_[index_of(d)].name;
  const std::uint32_t to = e.to.empty() ? d.sets.back().pool : pool_of(e.to);
  if (!e.to.empty() && to == d.sets.back().pool) {
    note(now, "has the configuration of " + e.to + " already", name);
    return;
  }
  d.recreates = e.recreate && e.max_surge.empty() && e.max_unavailable.empty();
  d.max_surge = d.recreates ? "0" : e.max_surge.empty() ? kQuarter : e.max_surge;
  d.max_unavailable = e.max_unavailable.empty() ? kQuarter : e.max_unavailable;
  d.min_ready = e.min_ready_seconds;
  for (std::uint32_t s = 0; s < servers_.size(); ++s)
    if (servers_[s].deployment == index_of(d) && is_ready(servers_[s].state) &&
        !is_available(servers_[s], now))
      book(later(servers_[s].since, d.min_ready), What::kAvailable, s);
  if (d.sets.size() == 1)
    d.sets.back().size.most = d.replicas + servers_of(d.max_surge, d.replicas, true).value_or(1);
  // A configuration that still has a ReplicaSet gets this one back.
  const auto old = std::ranges::find(d.sets, to, &ReplicaSet::pool);
  if (e.to.empty() || old == d.sets.end())
    d.sets.push_back({.pool = to, .revision = static_cast<std::int64_t>(++order_)});
  else
    std::rotate(old, old + 1, d.sets.end());
  std::ranges::sort(d.sets.begin(), d.sets.end() - 1, {}, &ReplicaSet::revision);
  note(now, "roll-out begins" + (e.to.empty() ? "" : ", to " + e.to), name);
  reconcile(d, now);
}

// The process ends. Its container is started again in the same pod, if the pod is to stay.
void Fleet::crash(std::uint32_t server, std::optional<Duration> repair, SimTime now) {
  Server& s = servers_[server];
  mark(now, "crashes", server);
  if (is_ending(s.state)) {
    end(server, now);
    return;
  }
  if (now - s.container > kForgetsCrashes) s.crashes = 0;
  ++s.crashes;
  ++s.epoch;
  if (s.state == State::kReady) {
    actions_.stop(server, ServerEnd::kKilled, now);
    book(later(now, discovery_.leave_unseen), What::kLeave, server);
  }
  ++tallies_[s.pool].result.ends;
  set_state(server, State::kDown, now);
  s.container = later(now, repair.value_or(back_off(s.crashes)));
  const Duration start = repair ? Duration::zero() : pools_[s.pool].start_up.restart();
  book(later(s.container, start), What::kReady, server);
  reconcile(owner_of(s), now);
}

// Kubernetes learns of a lost machine when its heartbeats are missing: until then its pod counts as
// ready, since it was so. It gives up the pod later.
void Fleet::vanish(std::uint32_t server, SimTime now) {
  Server& s = servers_[server];
  mark(now, "vanishes with its machine", server);
  ++s.epoch;
  const bool ending = is_ending(s.state), was_ready = s.state == State::kReady;
  const SimTime since = s.since;
  if (is_serving(s.state)) actions_.stop(server, ServerEnd::kVanished, now);
  actions_.lose_machine(server, now);
  ++tallies_[s.pool].result.ends;
  set_state(server, ending ? State::kAbsent : was_ready ? State::kLost : State::kVanished, now);
  if (ending) {  // Its ReplicaSet has given it up, and the router hears of it in any case.
    reuse_place(s, now);
    return;
  }
  book(later(now, discovery_.leave_vanished), What::kLeave, server);
  book(later(now, kNodeGrace + kUnreachable), What::kReplace, server);
  if (was_ready) {
    s.since = since;
    book(later(now, kNodeGrace), What::kNotReady, server);
    if (!is_available(s, now)) book(later(since, owner_of(s).min_ready), What::kAvailable, server);
  }
  reconcile(owner_of(s), now);
}

void Fleet::evict(std::uint32_t server, bool asks_again, SimTime now) {
  const Server& s = servers_[server];
  if (is_ending(s.state) || s.state == State::kAbsent) return;
  if (!budget_allows(server, now)) {
    if (!asks_again) mark(now, "waits for its disruption budget", server);
    book(later(now, kEvictAgain), What::kEvict, server);
    return;
  }
  mark(now, "is evicted", server);
  terminate(server, now);
  reconcile(owner_of(s), now);
}

// pkg/controller/disruption/disruption.go of Kubernetes v1.34 (getExpectedPodCount: bounds are of
// the Deployment's present number and round up) and pkg/registry/core/pod/storage/eviction.go:
// pending pods may always go; those that are not ready while no healthy one is missing, as the
// default policy IfHealthyBudget has it.
bool Fleet::budget_allows(std::uint32_t server, SimTime now) {
  const Server& s = servers_[server];
  if (s.state == State::kStarting && now < s.container) return true;
  const FleetPool& pool = pools_[s.pool];
  if (pool.most_evicted.empty() && pool.min_available.empty()) return true;
  const std::int64_t all = owner_of(s).replicas;
  const std::int64_t healthy = ready_of(s.deployment);
  const std::int64_t least =
      pool.min_available.empty()
          ? std::max<std::int64_t>(0, all - servers_of(pool.most_evicted, all, true).value_or(1))
          : servers_of(pool.min_available, all, true).value_or(all);
  return healthy > least || (!is_ready(s.state) && healthy == least && least > 0);
}

// ---- One server. --------------------------------------------------------------------------------

// False where no place is left.
bool Fleet::create(const ReplicaSet& set, std::uint32_t deployment, SimTime now) {
  const std::uint32_t begin = first_[set.pool];
  const auto end = begin + static_cast<std::uint32_t>(pools_[set.pool].places);
  std::uint32_t server = begin;
  while (server < end && servers_[server].state != State::kAbsent) ++server;
  if (server == end) return false;
  Server& s = servers_[server];
  ++s.epoch;
  ++s.pod;
  s.deployment = deployment;
  s.revision = set.revision;
  s.crashes = 0;
  s.terminated = false;
  s.created = now;
  const StartUpTimes& start = pools_[set.pool].start_up;
  s.container = later(now, start.node + start.image_pull);
  std::erase_if(spells_, [server](const Spell& spell) {
    return spell.end != What::kRouterBack && spell.subject == server;
  });
  actions_.set_pace(server, 1, now);
  actions_.set_events_lost(server, false, now);
  actions_.set_scrapes_lost(server, false, now);
  actions_.set_link(server, true, now);
  set_state(server, State::kStarting, now);
  mark(now, "starts", server);
  book(later(now, start.cold()), What::kReady, server);
  return true;
}

void Fleet::become_ready(std::uint32_t server, SimTime now) {
  Server& s = servers_[server];
  ++tallies_[s.pool].result.starts;
  set_state(server, State::kReady, now);
  mark(now, "is ready", server);
  actions_.start(server, now);
  book(later(now, discovery_.join), What::kJoin, server);
  draw_failures(server, now);
  if (owner_of(s).min_ready > Duration::zero())
    book(later(now, owner_of(s).min_ready), What::kAvailable, server);
  reconcile(owner_of(s), now);
}

void Fleet::join(std::uint32_t server, SimTime now) {
  Server& s = servers_[server];
  if (s.state != State::kReady || s.known_pod == s.pod) return;
  if (s.known_pod >= 0) leave(server, now);
  s.known_pod = s.pod;
  actions_.join(server, s.pod, now);
}

void Fleet::leave(std::uint32_t server, SimTime now) {
  servers_[server].known_pod = -1;
  actions_.leave(server, now);
}

// The pod is deleted: the router hears of it while the preStop hook sleeps.
void Fleet::terminate(std::uint32_t server, SimTime now) {
  Server& s = servers_[server];
  ++s.epoch;
  if (s.state == State::kReady || s.known_pod == s.pod)
    book(later(now, discovery_.leave), What::kLeave, server);
  const TerminationConfig& t = pools_[s.pool].termination;
  // The hook is for every container that runs, and what it starts then ends at once.
  const Duration hook = std::min(t.pre_stop, t.grace);
  const bool starts = s.state == State::kStarting || s.state == State::kDown;
  if (starts && now >= s.container && hook > Duration::zero()) {
    set_state(server, State::kClosing, now);
    book(later(now, hook), What::kKill, server);
    return;
  }
  if (s.state != State::kReady) {
    end(server, now);
    return;
  }
  set_state(server, State::kEnding, now);
  book(later(now, hook), What::kTerminate, server);
  book(later(now, t.grace), What::kKill, server);
}

void Fleet::end_if_drained(std::uint32_t server, SimTime now) {
  const Server& s = servers_[server];
  const Duration timeout = pools_[s.pool].termination.shutdown_timeout;
  if (now - s.since >= timeout || actions_.requests_in(server) == 0)
    end(server, now, ServerEnd::kTerminated);
  else
    book(std::min(later(now, kDrainLook), later(s.since, timeout)), What::kLook, server);
}

// The pod is gone. The router may still believe in it.
void Fleet::end(std::uint32_t server, SimTime now, ServerEnd how) {
  Server& s = servers_[server];
  ++s.epoch;
  if (s.state == State::kEnding) {
    actions_.stop(server, how, now);
    ++tallies_[s.pool].result.ends;
  }
  set_state(server, State::kAbsent, now);
  mark(now, "is gone", server);
  reuse_place(s, now);
}

void Fleet::draw_failures(std::uint32_t server, SimTime now) {
  for (std::uint32_t e = 0; e < events_.size(); ++e) draw_failure(e, server, now);
}

void Fleet::draw_failure(std::uint32_t event, std::uint32_t server, SimTime now) {
  const FleetEventConfig& e = events_[event];
  Server& s = servers_[server];
  if (!e.mean_time_between || s.state != State::kReady || pool_of(e.pool) != s.pool) return;
  const std::int64_t number = server - first_[s.pool];
  if (!e.servers.empty() && std::count(e.servers.begin(), e.servers.end(), number) == 0) return;
  // A spell that outlasts a crash draws the next one when it ends.
  if (std::ranges::any_of(spells_, [&](const Spell& spell) {
        return spell.event == event && spell.subject == server;
      }))
    return;
  const Duration until = drawn(event, server, s.draws++, *e.mean_time_between);
  book(later(now, until), What::kFails, server, event);
}

// ---- ReplicaSets and Deployments. ---------------------------------------------------------------

void Fleet::set_replicas(std::uint32_t pool, std::int64_t replicas, SimTime now) {
  Deployment& d = deployments_[pool];
  if (replicas == d.replicas) return;
  note(now, "scales from " + std::to_string(d.replicas) + " to " + std::to_string(replicas),
       pools_[pool].name);
  d.replicas = replicas;
  add_point(pool, now);
  if (d.sets.size() > 1) (void)resize(d, true, now);
  reconcile(d, now);
}

// A pool into which servers are rolled has those of the Deployment that did so last.
std::uint32_t Fleet::deployment_of(std::uint32_t pool) const {
  std::uint32_t found = pool;
  std::int64_t latest = 0;
  for (const Deployment& d : deployments_)
    if (const ReplicaSet& now = d.sets.back(); now.pool == pool && now.revision > latest) {
      latest = now.revision;
      found = index_of(d);
    }
  return found;
}

std::int64_t Fleet::ready_of(std::uint32_t deployment) const {
  return std::ranges::count_if(servers_, [deployment](const Server& s) {
    return s.deployment == deployment && is_ready(s.state);
  });
}

std::int64_t Fleet::counted(const ReplicaSet& set) const {
  return std::ranges::count_if(servers_, [&](const Server& s) {
    return s.pool == set.pool && s.revision == set.revision && is_counted(s.state);
  });
}

std::int64_t Fleet::available(const ReplicaSet& set, SimTime now) const {
  return std::ranges::count_if(servers_, [&](const Server& s) {
    return s.pool == set.pool && s.revision == set.revision && is_available(s, now);
  });
}

// Servers that serve from the start have done so for long.
bool Fleet::is_available(const Server& s, SimTime now) const {
  return is_ready(s.state) &&
         (s.since == SimTime::zero() || s.since + deployments_[s.deployment].min_ready <= now);
}

// One step of a roll-out, or of a change of `replicas` meanwhile; false when there is nothing to
// do.
bool Fleet::resize(Deployment& d, bool is_scaled, SimTime now) const {
  RollOutState state{
      .replicas = d.replicas,
      .max_surge = servers_of(d.max_surge, d.replicas, true).value_or(1),
      .max_unavailable = servers_of(d.max_unavailable, d.replicas, false).value_or(0),
      .sets = {}};
  for (const ReplicaSet& set : d.sets) {
    state.sets.push_back(set.size);
    state.sets.back().available = available(set, now);
  }
  const std::int64_t newest = d.sets.back().revision;
  const bool has_old = std::ranges::any_of(servers_, [&](const Server& s) {
    return s.deployment == index_of(d) && s.revision != newest && s.state != State::kAbsent;
  });
  bool changes = true;
  if (is_scaled)
    share_out(state, d.recreates);
  else
    changes = d.recreates ? recreate_step(state, has_old) : roll_out_step(state);
  for (std::size_t i = 0; i < d.sets.size(); ++i) d.sets[i].size = state.sets[i];
  return changes;
}

void Fleet::reconcile(Deployment& d, SimTime now) {
  if (reconciling_) return;  // What changes meanwhile is seen below.
  reconciling_ = true;
  for (bool again = true; again;) {
    if (d.sets.size() == 1) d.sets.front().size.spec = d.replicas;
    again = d.sets.size() > 1 && resize(d, false, now);
    for (std::size_t i = 0; i < d.sets.size(); ++i) fill(d.sets[i], index_of(d), now);
  }
  reconciling_ = false;
  if (d.sets.size() == 1 || d.sets.back().size.spec != d.replicas ||
      available(d.sets.back(), now) != d.replicas)
    return;
  const bool over = std::all_of(d.sets.begin(), d.sets.end() - 1,
                                [](const ReplicaSet& set) { return set.size.spec == 0; });
  if (!over) return;
  note(now, "roll-out is over", pools_[index_of(d)].name);
  d.sets.erase(d.sets.begin(), d.sets.end() - 1);
}

// Each Deployment with servers in the pool may have waited for the place of this one.
void Fleet::reuse_place(const Server& s, SimTime now) {
  for (Deployment& d : deployments_)
    if (index_of(d) == s.deployment ||
        std::ranges::find(d.sets, s.pool, &ReplicaSet::pool) != d.sets.end())
      reconcile(d, now);
}

// Creates or deletes the pods of a ReplicaSet. Those that are not ready go first, then those that
// have been ready for the shortest time (pkg/controller/controller_utils.go, ActivePods, v1.34).
void Fleet::fill(const ReplicaSet& set, std::uint32_t deployment, SimTime now) {
  std::int64_t more = set.size.spec - counted(set);
  if (more > 0) {
    while (more > 0 && create(set, deployment, now)) --more;
    if (!std::exchange(tallies_[set.pool].is_full, more > 0) && more > 0)
      note(now, "finds no place for another server", pools_[set.pool].name);
  }
  if (more >= 0) return;
  std::vector<std::uint32_t> pods;
  for (std::uint32_t s = 0; s < servers_.size(); ++s)
    if (servers_[s].pool == set.pool && servers_[s].revision == set.revision &&
        is_counted(servers_[s].state))
      pods.push_back(s);
  std::reverse(pods.begin(), pods.end());
  std::stable_sort(pods.begin(), pods.end(), [this](std::uint32_t a, std::uint32_t b) {
    const bool a_ready = is_ready(servers_[a].state), b_ready = is_ready(servers_[b].state);
    if (a_ready != b_ready) return b_ready;
    return servers_[a].since > servers_[b].since;
  });
  for (std::size_t i = 0; i < static_cast<std::size_t>(-more); ++i) terminate(pods[i], now);
}

// ---- Books. -------------------------------------------------------------------------------------

void Fleet::count_time(Tally& t, SimTime now) {
  const double seconds = (now - t.since).to_seconds();
  t.server_seconds += static_cast<double>(t.servers) * seconds;
  t.ready_seconds += static_cast<double>(t.ready) * seconds;
  t.since = now;
}

void Fleet::set_state(std::uint32_t server, State state, SimTime now) {
  Server& s = servers_[server];
  Tally& t = tallies_[s.pool];
  count_time(t, now);
  const auto count = [&](State which, std::int64_t by) {
    if (which != State::kAbsent) t.servers += by;
    if (which == State::kReady) t.ready += by;
  };
  count(s.state, -1);
  count(state, 1);
  t.result.most_servers = std::max(t.result.most_servers, t.servers);
  t.result.least_ready = std::min(t.result.least_ready, t.ready);
  add_point(s.pool, now);
  s.state = state;
  s.since = now;
  note_who_serves(now);
}

void Fleet::note_who_serves(SimTime now) {
  const bool serve = std::ranges::all_of(deployments_, [this](const Deployment& d) {
    return d.is_target || std::ranges::any_of(servers_, [owner = index_of(d)](const Server& s) {
             return s.deployment == owner && s.state == State::kReady;
           });
  });
  serves_since_ = serve ? std::min(serves_since_, now) : SimTime::max();
}

void Fleet::add_point(std::uint32_t pool, SimTime now) {
  const Tally& t = tallies_[pool];
  std::vector<FleetPoint>& points = tallies_[pool].result.points;
  const double at = seconds_of(now);
  if (!points.empty() && points.back().at_s == at) points.pop_back();
  if (points.size() < kMostMarks)
    points.push_back({.at_s = at,
                      .servers = t.servers,
                      .ready = t.ready,
                      .wanted = deployments_[pool].replicas});
}

void Fleet::begin_report(SimTime now) {
  if (reported_since_) return;
  reported_since_ = now;
  for (Tally& t : tallies_) {
    FleetPoolResult fresh{.pool = t.result.pool};
    fresh.most_servers = t.servers;
    fresh.least_ready = t.ready;
    fresh.points = std::move(t.result.points);
    t.result = std::move(fresh);
    t.server_seconds = t.ready_seconds = 0;
    t.since = now;
  }
}

// An event that does nothing is told, too.
void Fleet::note_in_vain(std::uint32_t event, SimTime at, const std::string& why) {
  const FleetEventConfig& e = events_[event];
  note(at, "sees no " + std::string(enum_name(e.kind)) + ": " + why,
       e.kind == FleetEventKind::kRouterRestart ? "router" : pools_[pool_of(e.pool)].name);
}

FleetResult Fleet::take_result(SimTime end) {
  std::sort_heap(due_.begin(), due_.end());
  for (auto due = due_.rbegin(); due != due_.rend(); ++due)
    if (due->what == What::kHappens) note_in_vain(due->subject, due->at, "the run is over");
  const SimTime begin = reported_since_.value_or(SimTime::zero());
  const double whole = std::max(1e-9, (end - begin).to_seconds());
  for (Tally& t : tallies_) {
    count_time(t, end);
    t.result.mean_servers = t.server_seconds / whole;
    t.result.mean_ready = t.ready_seconds / whole;
    t.result.server_hours = t.server_seconds / 3600;
    result_.pools.push_back(std::move(t.result));
  }
  return std::move(result_);
}

void Fleet::note(SimTime at, std::string what, std::string subject) {
  if (result_.marks.size() < kMostMarks)
    result_.marks.push_back(
        {.at_s = seconds_of(at), .what = std::move(what), .subject = std::move(subject)});
  else
    ++result_.unmarked;
}

void Fleet::mark(SimTime at, std::string what, std::uint32_t server) {
  const std::uint32_t pool = servers_[server].pool;
  note(at, std::move(what), pools_[pool].name + "-" + std::to_string(server - first_[pool]));
}

std::uint32_t Fleet::pool_of(std::string_view name) const {
  if (name.empty()) return 0;
  const auto at = std::find_if(pools_.begin(), pools_.end(),
                               [&](const FleetPool& p) { return p.name == name; });
  ROUTESIM_CHECK(at != pools_.end(), "an event names a pool that is not there");
  return static_cast<std::uint32_t>(at - pools_.begin());
}

Duration Fleet::drawn(std::uint32_t event, std::uint32_t server, std::uint64_t turn,
                      Duration mean) const {
  RandomStream random(seed_, Stream::kFleet, mix64(mix64(event, server), turn));
  const double factor = -std::log1p(-random.uniform());
  return Duration::nanoseconds(
      std::llround(std::min(1e18, static_cast<double>(mean.ns()) * factor)));
}

}  // namespace routesim::sim
