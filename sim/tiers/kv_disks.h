// Files with KV chunks behind the host memory of engines.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/transfers.h"
#include "sim/tiers/chunk_pool.h"
#include "sim/tiers/kv_pull.h"
#include "sim/tiers/tier_engines.h"

namespace routesim::sim {

/// Hears that chunks of a pull are in host memory.
class DiskReader {
 public:
  virtual ~DiskReader() = default;
  virtual void on_read(std::uint32_t pull, SimTime now) = 0;
};

/// Owns the file systems and the threads of each engine core that read and write them. Engines of
/// one host with the same root find each other's files; with a shared mount all engines do. What a
/// request stores or reads in a step is one job of one thread, file after file. Threads for reading
/// write when nothing is to be read, and the other way round. Files that are there are not written
/// again, and none is ever removed. They outlive processes and pods, and end with their machine; a
/// job ends with its engine.
///
/// Sources: vLLM v0.27.1 v1/kv_offload/tiering/manager.py, tiering/fs/manager.py, io.py and
/// thread_pool.py (v0.22 to v0.30 likewise).
class KvDisks final : public TransferOwner {
 public:
  enum Direction : std::size_t { kRead, kWrite };
  using Rates = std::array<double, 2>;  ///< Bytes per second, per direction.

  /// The references outlive this.
  KvDisks(std::size_t endpoints, Transfers& transfers, TierEngines& engines)
      : transfers_(transfers), loop_(engines), engines_(endpoints) {}
  /// The engine of an endpoint has files. Their names begin with `layout`: of another model, or
  /// another layout of one, there are others. `drives`: those of its host.
  void add_engine(std::uint32_t endpoint, const std::string& layout, const Rates& drives);
  void set_reader(DiskReader& reader) { reader_ = &reader; }

  /// How many chunks of a pull there are from its first one on.
  std::int64_t find(std::uint32_t endpoint, const KvPull& pull) const;
  /// Reads what a pull has found; says so to the reader.
  void read(std::uint32_t endpoint, const KvPull& pull, SimTime now);
  /// Writes chunks; the engine hears when it need not keep them any more.
  void write(std::uint32_t endpoint, std::unique_ptr<KvPull> chunks, SimTime now);
  void on_transferred(std::uint64_t id, SimTime now) override;
  /// The engine is gone, with its jobs.
  void drop(std::uint32_t endpoint, SimTime now);
  /// Its machine is gone, too, with the files there. Another one takes the place, the same for all
  /// engines that lose theirs at once.
  void lose_machine(std::uint32_t endpoint, SimTime now);

 private:
  struct FileSystem {
    ChunkPool files{ChunkPool::kNoLimit};
    std::array<std::vector<LinkId>, 2> links{};  ///< Its own, per direction.
    std::size_t heir = 0;                        ///< Of engines whose machine was lost last,
    SimTime lost = SimTime::max();               ///< which was then.
  };
  struct Job {
    std::uint32_t id = 0;
    Direction direction = kRead;
    std::uint32_t pull = 0;          ///< To read for.
    std::unique_ptr<KvPull> chunks;  ///< To write.
    double bytes = 0;
    std::size_t thread = 0;
    SimTime begin;
  };
  struct Engine {
    std::size_t system = ~std::size_t{0};  ///< None without files.
    std::vector<LinkId> threads;           ///< Those for reading first.
    std::vector<bool> busy;
    std::size_t readers = 0;
    std::array<std::deque<Job>, 2> waiting;
    std::map<std::uint32_t, Job> running;
  };
  std::size_t file_system(std::uint32_t endpoint, const std::string& layout, const Rates& drives);
  void enqueue(std::uint32_t endpoint, Job job, SimTime now);
  void start_waiting(std::uint32_t endpoint, SimTime now);
  void start(std::uint32_t endpoint, Job job, std::size_t thread, SimTime now);
  void finish(std::uint32_t endpoint, Job& job, SimTime now);

  Transfers& transfers_;
  TierEngines& loop_;
  DiskReader* reader_ = nullptr;
  std::map<std::pair<std::string, LinkId>, std::size_t> system_of_;
  std::vector<FileSystem> systems_;
  std::vector<Engine> engines_;  ///< By endpoint.
  std::uint32_t jobs_ = 0;
  std::vector<std::unique_ptr<KvPull>> written_;  ///< Engines may still hold messages about them.
};

}  // namespace routesim::sim
