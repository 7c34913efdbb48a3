// What a KV transfer between a prefill and a decode server costs on an idle link. Sharing of a link
// by several transfers is the simulator's business.
#pragma once

#include <cstdint>

#include "models/specs.h"
#include "sim/base/describe.h"
#include "sim/base/units.h"

namespace routesim::models {

/// One direction of one GPU's path to its peer. NIXL reads blocks from all TP ranks in parallel, so
/// a transfer of a TP group moves each rank's share over its own link.
struct KvTransferLink {
  double gb_per_s = 25.0;                      ///< 10^9 bytes/s per GPU; > 0.
  double efficiency = 0.8;                     ///< Share of it that large reads reach, (0, 1].
  Duration setup = Duration::milliseconds(2);  ///< Per transfer: metadata, posting reads.
  Duration handshake = Duration::milliseconds(100);  ///< First contact of a pair of engines.
};

void describe(Describer& d, KvTransferLink& link);

/// The default link between two servers of this accelerator: its NIC share.
KvTransferLink default_transfer_link(const AcceleratorSpec& a);

/// Bytes one GPU of the receiving engine reads for `tokens` tokens: all layers (windowed ones hold
/// at most their window), its own head share, the full latent with MLA.
Bytes kv_transfer_bytes(const ModelSpec& m, KvDtype dtype, const Parallelism& p,
                        std::int64_t tokens);

/// Sustained bytes per second of the link.
double transfer_bytes_per_second(const KvTransferLink& link);

/// Setup plus bytes over the unshared link, without the handshake.
Duration transfer_time(const KvTransferLink& link, Bytes bytes);

}  // namespace routesim::models
