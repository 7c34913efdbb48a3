#include "sim/fleet/fleet_config.h"

#include <charconv>

namespace routesim::sim {

namespace {

constexpr Duration kLongestPhase = Duration::seconds(7 * 86'400);
constexpr Duration kLongestRun = Duration::seconds(100 * 86'400);

void describe_roll_out(Describer& d, FleetEventConfig& c) {
  field(d,
        {"to",
         "roll-out: the pool whose configuration the new servers have; it is empty until then. "
         "Absent: the same one."},
        c.to);
  field(d,
        {.name = "max_surge",
         .doc = "roll-out: servers above the number, or a percentage; 25% by default.",
         .plain = true},
        c.max_surge);
  field(d,
        {.name = "max_unavailable",
         .doc = "roll-out: servers that may be missing, or a percentage; 25% by default.",
         .plain = true},
        c.max_unavailable);
  field(d,
        {"min_ready_seconds",
         "roll-out: how long a new server has to be ready until the next step counts on it."},
        c.min_ready_seconds, DurationRange{Duration::zero(), kLongestPhase});
  field(
      d,
      {"recreate",
       "roll-out: all old servers end before the first new one starts, as with strategy Recreate. "
       "max_surge or max_unavailable of the event go before it."},
      c.recreate);
}

void describe_probes(Describer& d, StartUpConfig& c) {
  const DurationRange range{Duration::zero(), kLongestPhase};
  field(d,
        {"probe_period",
         "Period of the readiness probe, or of the startup probe that goes before it: half of it "
         "passes in the mean."},
        c.probe_period, DurationRange{Duration::zero(), Duration::seconds(3600)});
  field(d,
        {"probe_delay",
         "initialDelaySeconds: no probe before this time from the start of the container. A longer "
         "start does not see it."},
        c.probe_delay, range);
  field(d,
        {"probe_repeats",
         "From the first probe that succeeds to the last one that has to: successThreshold - 1 "
         "periods of the readiness probe."},
        c.probe_repeats, range);
}

}  // namespace

void describe(Describer& d, StartUpConfig& c) {
  const DurationRange range{Duration::zero(), kLongestPhase};
  field(
      d,
      {"total",
       "From the creation of the pod until it is ready. Absent: the sum of the phases. A measured "
       "time goes here."},
      c.total, range);
  field(d, {"node", "Until there is a machine for the pod. Absent: there is one."}, c.node, range);
  field(d, {"image_pull", "Pull of the image. Absent: image_gb at 0.129 GB/s."}, c.image_pull,
        range);
  field(d, {"image_gb", "The image to pull, 10^9 bytes. Absent: the machine has it."}, c.image_gb,
        RealRange{.min = 0, .max = 1000});
  field(d,
        {"process",
         "From the start of the container until it loads weights: imports, configuration, workers. "
         "Absent: what the engine takes."},
        c.process, range);
  field(d,
        {"load",
         "Weights from storage into GPU memory. Absent: by the model's size, storage and GPUs; a "
         "container that is started again finds them in the machine's page cache."},
        c.load, range);
  field(
      d,
      {"compile", "torch.compile. Absent: what it takes for a model of this depth, 0 for SGLang."},
      c.compile, range);
  field(d,
        {"warm_up",
         "Memory profile, KV cache and CUDA graphs. Absent: what the release takes for a model of "
         "this depth."},
        c.warm_up, range);
  field(d,
        {"storage",
         "Where the weights are: nvme, network (a file system), object-store (they are downloaded "
         "first) or memory (the page cache has them)."},
        c.storage);
  field(
      d,
      {"storage_gb_per_s",
       "What one server reads its weights with, 10^9 bytes/s. Absent: nvme 1.1 for each GPU and 5 "
       "at most, network 0.5, object-store 0.75."},
      c.storage_gb_per_s, RealRange{.min = 0, .max = 1e4, .min_open = true});
  field(d, {"compile_cache", "Compiled code is found on a volume that outlives the pod."},
        c.compile_cache);
  field(d,
        {"snapshot",
         "The process is restored from a snapshot of a running one, in an object store: `process` "
         "to `warm_up` become the read of its memory."},
        c.snapshot);
  describe_probes(d, c);
}

void describe(Describer& d, TerminationConfig& c) {
  const DurationRange range{Duration::zero(), kLongestPhase};
  field(d, {"pre_stop", "Sleep of the preStop hook: the server still answers."}, c.pre_stop, range);
  field(d,
        {"shutdown_timeout",
         "vLLM's --shutdown-timeout: how long requests in flight may go on after SIGTERM. 0, the "
         "default, cuts them."},
        c.shutdown_timeout, range);
  field(
      d,
      {"grace", "terminationGracePeriodSeconds: after this time, preStop included, it is killed."},
      c.grace, range);
}

void describe(Describer& d, DiscoveryConfig& c) {
  const DurationRange range{Duration::zero(), kLongestPhase};
  field(d, {"join", "From a server that is ready to a router that sends to it."}, c.join, range);
  field(d,
        {"leave",
         "From a server that is gone, or about to go, to a router that no longer sends to it."},
        c.leave, range);
  field(d,
        {"leave_unseen",
         "The same for a server that crashes. Absent: what the product's health checks take."},
        c.leave_unseen, range);
}

void describe(Describer& d, FleetEventConfig& c) {
  field(d,
        {"kind",
         "crash: the process ends and is started again in its pod. node-loss: machines vanish "
         "without a word. drain: pods are evicted. slow: steps take `factor` times as long. "
         "kv-events-lost: a server's KV events do not arrive. router-restart: a router process "
         "starts with empty memory. scale: the pool gets another number of servers. roll-out: all "
         "servers are replaced, as a Deployment does it. link-lost: no KV moves to or from the "
         "server's network port; requests and answers go another way. scrapes-lost: routers "
         "cannot read a server's metrics, and go on with those that they read last.",
         true},
        c.kind);
  field(d, {"at", "When it happens, from the start of the run."}, c.at,
        DurationRange{Duration::zero(), kLongestRun});
  field(d,
        {"mean_time_between",
         "Instead of `at`: the mean time that one server serves until it happens, exponentially "
         "distributed and drawn with the run's seed (MTBF)."},
        c.mean_time_between, DurationRange{Duration::milliseconds(1), kLongestRun});
  field(d, {"pool", "The pool it happens to. Absent: the only one."}, c.pool);
  field(d, {"servers", "Numbers of servers, from 0. Absent: one that serves, drawn."}, c.servers,
        IntRange{0, 65'535});
  field(d,
        {"lasts",
         "How long a server is slow, silent, unread or without its link, a router is away; for "
         "crash the time until it serves again, exponential beside mean_time_between (MTTR). "
         "Absent: crash takes what a start without a pull takes, slow, kv-events-lost and "
         "scrapes-lost last to the end, a router 5s."},
        c.lasts, DurationRange{Duration::zero(), kLongestRun});
  field(d, {"factor", "slow: how many times as long steps take."}, c.factor,
        RealRange{.min = 0.01, .max = 1000});
  field(d, {"replicas", "scale: the servers that the pool has from then on."}, c.replicas,
        IntRange{0, 65'536});
  field(d, {"router", "router-restart: number of the process. Absent: the leader, or the first."},
        c.router, IntRange{0, 63});
  field(d,
        {"graceful",
         "router-restart, with routing.leader_election: the process is asked to end, so that it "
         "gives up its lease, and from v0.10.0 on serves for 30s. Otherwise it crashes, and its "
         "lease has to run out."},
        c.graceful);
  describe_roll_out(d, c);
}

std::optional<std::int64_t> servers_of(std::string_view text, std::int64_t whole, bool up) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text.remove_suffix(1);
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0 || n > 65'536)
    return std::nullopt;
  if (!percent) return n;
  return (n * whole + (up ? 99 : 0)) / 100;
}

}  // namespace routesim::sim
