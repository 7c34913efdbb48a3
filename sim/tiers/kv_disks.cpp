#include "sim/tiers/kv_disks.h"

#include <algorithm>

namespace routesim::sim {

void KvDisks::add_engine(std::uint32_t endpoint, const std::string& layout, const Rates& drives) {
  const DiskRules& rules = loop_.rules(endpoint).disk;
  Engine& engine = engines_[endpoint];
  engine.system = file_system(endpoint, layout, drives);
  engine.readers = static_cast<std::size_t>(rules.read_threads);
  for (std::int64_t t = 0; t < rules.read_threads + rules.write_threads; ++t)
    engine.threads.push_back(transfers_.add_link(rules.thread_bytes_per_s));
  engine.busy.resize(engine.threads.size());
}

std::size_t KvDisks::file_system(std::uint32_t endpoint, const std::string& layout,
                                 const Rates& drives) {
  const DiskRules& rules = loop_.rules(endpoint).disk;
  const std::string name = rules.root + "\n" + layout;
  const LinkId host = rules.shared ? ~LinkId{0} : transfers_.host_memory(endpoint);
  const auto [at, is_new] = system_of_.try_emplace({name, host}, systems_.size());
  if (!is_new) return at->second;
  FileSystem& system = systems_.emplace_back();
  for (const Direction d : {kRead, kWrite}) {
    const double rate = rules.shared || rules.bytes_per_s > 0 ? rules.bytes_per_s : drives[d];
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
  if (loop_.rules(endpoint).disk.shared) path.add(transfers_.nic(endpoint, writes));
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
  loop_.report(
      {.kind = job.direction == kWrite ? CopySpan::Kind::kToDisk : CopySpan::Kind::kFromDisk,
       .endpoint = endpoint,
       .begin = job.begin,
       .end = now,
       .bytes = job.bytes});
  finish(endpoint, job, now);
  start_waiting(endpoint, now);
}

void KvDisks::drop(std::uint32_t endpoint, SimTime now) {
  Engine& engine = engines_[endpoint];
  for (const auto& [id, job] : engine.running)
    transfers_.cancel(Transfers::Kind::kDisk, static_cast<std::uint64_t>(endpoint) << 32 | id, now);
  engine.running.clear();
  engine.waiting = {};
  engine.busy.assign(engine.busy.size(), false);
}

// Servers that stay on the host keep its files. The next ones find an empty machine in every place
// once none is left.
void KvDisks::lose_machine(std::uint32_t endpoint, SimTime now) {
  Engine& engine = engines_[endpoint];
  if (engine.threads.empty() || loop_.rules(endpoint).disk.shared) return;
  const std::size_t old = engine.system;
  if (systems_[old].lost != now) {
    systems_[old].heir = systems_.size();
    systems_[old].lost = now;
    FileSystem heir;
    heir.links = systems_[old].links;
    systems_.push_back(std::move(heir));
  }
  engine.system = systems_[old].heir;
  for (std::uint32_t e = 0; e < engines_.size(); ++e)
    if (engines_[e].system == old && loop_.is_up(e)) return;
  for (Engine& e : engines_)
    if (e.system == old) e.system = systems_[old].heir;
}

void KvDisks::finish(std::uint32_t endpoint, Job& job, SimTime now) {
  if (job.direction == kRead) {
    reader_->on_read(job.pull, now);
    return;
  }
  for (const BlockKey key : job.chunks->chunks)
    systems_[engines_[endpoint].system].files.insert(key);
  job.chunks->chunks = {};
  written_.push_back(std::move(job.chunks));
  loop_.tell(endpoint, PullNews::kDropped, *written_.back(), now);
}

}  // namespace routesim::sim
