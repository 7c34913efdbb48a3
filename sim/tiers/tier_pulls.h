// Chunks that one engine core asks another one or its files for, and those it is asked for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "sim/tiers/host_chunks.h"
#include "sim/tiers/kv_pull.h"
#include "sim/tiers/kv_tiers.h"

namespace routesim::sim {

/// An engine core's side of pulls: asks for chunks that its requests miss and has room for what is
/// found, keeps what others fetch from it, and hands what it has stored on to its files. Each chunk
/// that is on its way is held here until the message that ends its way.
class TierPulls {
 public:
  using Holdings = HostChunks::Holdings;
  /// All arguments outlive this.
  TierPulls(KvTiers& tier, HostChunks& chunks, SequenceTable& sequences)
      : tier_(tier), chunks_(chunks), sequences_(sequences) {}

  /// The request could get the chunks from `first` on: asks for them, or makes room for what was
  /// found. True while it has to wait.
  bool wait(SequenceSlot s, std::span<const BlockKey> chunks, std::int64_t first, SimTime now);
  /// A message from the other side. True when chunks have come that the request still waits for.
  bool hear(PullNews news, KvPull& pull, SimTime now);
  /// Chunks that have come from the GPU go on to files, all of a request and step in one job, and
  /// stay in host memory until they are there (v1/kv_offload/tiering/manager.py, complete_store).
  void write_to_disk(Holdings chunks);

  /// Messages to send since the last call; the caller clears it.
  std::vector<PullMessage>& messages() { return messages_; }
  /// Chunks on their way here, and lookups in files.
  std::int64_t open() const { return std::ssize(arriving_) + disk_lookups_; }
  /// KvTiers::pulling().
  bool pulling() const;
  /// Tokens of the chunks that a pull found.
  std::int64_t found_tokens(const KvPull& pull) const { return pull.found * tier_.chunk_tokens(); }
  /// Appends what is held for pulls and files.
  void add_holdings(std::vector<const BlockHolding*>& holdings) const;

 private:
  bool has_files() const { return tier_.rules().disk.in_use(); }
  void send(PullMessage::Kind kind, KvPull& pull) {
    messages_.push_back({.kind = kind, .pull = &pull});
  }
  void send_made(PullMessage::Kind kind, std::unique_ptr<KvPull> made);
  void ask(SequenceSlot s, std::span<const BlockKey> chunks, std::int64_t first, SimTime now);
  bool make_room(KvPull& pull);
  void answered(KvPull& pull, SimTime now);
  bool arrived(const KvPull& pull, SimTime now);
  void failed(const KvPull& pull, SimTime now);
  bool end_wait(const KvPull& pull, SimTime now);
  void serve(KvPull& pull);
  void end_serving(const KvPull& pull);

  KvTiers& tier_;
  HostChunks& chunks_;
  SequenceTable& sequences_;
  std::vector<PullMessage> messages_;
  std::map<std::uint32_t, Holdings> serving_;   ///< By pull, or write to files.
  std::map<std::uint32_t, Holdings> arriving_;  ///< Room for what comes, by pull.
  std::int64_t disk_lookups_ = 0;               ///< Not answered yet.
};

}  // namespace routesim::sim
