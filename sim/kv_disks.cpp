#include "sim/kv_disks.h"

#include <algorithm>

namespace routesim::sim {

KvDisks::KvDisks(const RunPlan& plan, Servers& servers, Transfers& transfers, RequestFlow& flow)
    : servers_(servers), transfers_(transfers), flow_(flow), engines_(servers.endpoints().size()) {
  for (std::uint32_t e = 0; e < servers.endpoints().size(); ++e)
    if (plan.pools[servers.endpoints()[e].pool].rules.tiers.disk.in_use()) add_engine(plan, e);
}

void KvDisks::add_engine(const RunPlan& plan, std::uint32_t endpoint) {
  const DiskRules& rules = plan.pools[servers_.endpoints()[endpoint].pool].rules.tiers.disk;
  Engine& engine = engines_[endpoint];
  engine.system = file_system(plan, endpoint);
  engine.readers = static_cast<std::size_t>(rules.read_threads);
  for (std::int64_t t = 0; t < rules.read_threads + rules.write_threads; ++t)
    engine.threads.push_back(transfers_.add_link(rules.thread_bytes_per_s));
  engine.busy.resize(engine.threads.size());
}

// Files of another model, or another layout of one, have names of their own.
std::size_t KvDisks::file_system(const RunPlan& plan, std::uint32_t endpoint) {
  const ResolvedPool& pool = plan.pools[servers_.endpoints()[endpoint].pool];
  const TierRules& tiers = pool.rules.tiers;
  const DiskRules& rules = tiers.disk;
  const std::string name = rules.root + "\n" + pool.config.model + "\n" +
                           std::to_string(tiers.chunk_blocks * pool.rules.block_size) + "\n" +
                           std::to_string(tiers.block_bytes);
  const LinkId host = rules.shared ? ~LinkId{0} : transfers_.host_memory(endpoint);
  const auto [at, is_new] = system_of_.try_emplace({name, host}, systems_.size());
  if (!is_new) return at->second;
  FileSystem& system = systems_.emplace_back();
  const HostConfig drives = plan.scenario.cluster.host.value_or(HostConfig{});
  const double rates[] = {drives.disk_read_gb_per_s * 1e9, drives.disk_write_gb_per_s * 1e9};
  for (const Direction d : {kRead, kWrite}) {
    const double rate = rules.shared || rules.bytes_per_s > 0 ? rules.bytes_per_s : rates[d];
    if (rate > 0) system.links[d].push_back(transfers_.add_link(rate));
  }
  return at->second;
}

std::int64_t KvDisks::find(std::uint32_t endpoint, const KvPull& pull) const {
  const std::span<const BlockKey> chunks = pull.chunks;
  return systems_[engines_[endpoint].system].files.leading(
      chunks.subspan(static_cast<std::size_t>(pull.first)));
}

void KvDisks::read(std::uint32_t endpoint, const KvPull& pull, SimTime now) {
  Job job;
  job.pull = pull.id;
  job.bytes = pull.bytes;
  enqueue(endpoint, std::move(job), now);
}

void KvDisks::write(std::uint32_t endpoint, std::unique_ptr<KvPull> chunks, SimTime now) {
  Job job;
  job.direction = kWrite;
  job.chunks = std::move(chunks);
  enqueue(endpoint, std::move(job), now);
}

void KvDisks::enqueue(std::uint32_t endpoint, Job job, SimTime now) {
  job.id = jobs_++;
  Engine& engine = engines_[endpoint];
  engine.waiting[job.direction].push_back(std::move(job));
  start_waiting(endpoint, now);
}

// A job takes a free thread of its own kind, or else one of the other.
void KvDisks::start_waiting(std::uint32_t endpoint, SimTime now) {
  Engine& engine = engines_[endpoint];
  for (const Direction d : {kRead, kWrite})
    while (!engine.waiting[d].empty()) {
      const auto first = engine.busy.begin();
      const auto middle = first + static_cast<std::ptrdiff_t>(engine.readers);
      auto thread = d == kRead ? std::find(first, engine.busy.end(), false)
                               : std::find(middle, engine.busy.end(), false);
      if (d == kWrite && thread == engine.busy.end()) {
        thread = std::find(first, middle, false);
        if (thread == middle) break;
      }
      if (thread == engine.busy.end()) break;
      Job job = std::move(engine.waiting[d].front());
      engine.waiting[d].pop_front();
      start(endpoint, std::move(job), static_cast<std::size_t>(thread - first), now);
    }
}

void KvDisks::start(std::uint32_t endpoint, Job job, std::size_t thread, SimTime now) {
  Engine& engine = engines_[endpoint];
  const FileSystem& system = systems_[engine.system];
  const bool writes = job.direction == kWrite;
  if (writes) {
    std::int64_t missing = 0;
    for (const BlockKey key : job.chunks->chunks) missing += system.files.contains(key) ? 0 : 1;
    job.bytes = job.chunks->bytes * static_cast<double>(missing) /
                static_cast<double>(job.chunks->chunks.size());
    if (missing == 0) return finish(endpoint, job, now);
  }
  job.thread = thread;
  job.begin = now;
  engine.busy[thread] = true;
  LinkPath path{engine.threads[thread], transfers_.host_memory(endpoint)};
  for (const LinkId link : system.links[job.direction]) path.add(link);
  const EndpointHome& at = servers_.endpoints()[endpoint];
  if (servers_.pool(at).rules.tiers.disk.shared) path.add(transfers_.nic(endpoint, writes));
  const std::uint32_t id = job.id;
  const double bytes = job.bytes;
  engine.running.emplace(id, std::move(job));
  transfers_.start(Transfers::Kind::kDisk, static_cast<std::uint64_t>(endpoint) << 32 | id, path,
                   bytes, now);
}

void KvDisks::on_transferred(std::uint64_t id, SimTime now) {
  const auto endpoint = static_cast<std::uint32_t>(id >> 32);
  Engine& engine = engines_[endpoint];
  auto node = engine.running.extract(static_cast<std::uint32_t>(id));
  Job& job = node.mapped();
  engine.busy[job.thread] = false;
  flow_.report(
      {.kind = job.direction == kWrite ? CopySpan::Kind::kToDisk : CopySpan::Kind::kFromDisk,
       .endpoint = endpoint,
       .begin = job.begin,
       .end = now,
       .bytes = job.bytes});
  finish(endpoint, job, now);
  start_waiting(endpoint, now);
}

void KvDisks::finish(std::uint32_t endpoint, Job& job, SimTime now) {
  if (job.direction == kRead) {
    reader_->on_read(job.pull, now);
    return;
  }
  for (const BlockKey key : job.chunks->chunks)
    systems_[engines_[endpoint].system].files.insert(key);
  tell_written(endpoint, job, now);
}

void KvDisks::tell_written(std::uint32_t endpoint, Job& job, SimTime now) {
  job.chunks->chunks = {};
  written_.push_back(std::move(job.chunks));
  const EndpointHome& at = servers_.endpoints()[endpoint];
  Replica& replica = servers_.replica(at.replica);
  replica.advance_to(now);
  replica.tell_pull(at.rank, PullNews::kDropped, *written_.back(), now);
  flow_.after_touch(at.replica, now);
}

}  // namespace routesim::sim
