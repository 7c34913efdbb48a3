#include "models/transfer.h"

#include <algorithm>

#include "models/kv_cache_spec.h"

namespace routesim::models {

void describe(Describer& d, KvTransferLink& link) {
  field(d, {"gb_per_s", "Bandwidth per GPU and direction, 10^9 bytes/s."}, link.gb_per_s,
        RealRange{.min = 0, .min_open = true});
  field(d, {"efficiency", "Share of it that large reads reach."}, link.efficiency,
        RealRange{.min = 0, .max = 1, .min_open = true});
  field(d, {"setup", "Time per transfer before the first byte."}, link.setup, DurationRange{});
  field(d, {"handshake", "Extra time at the first contact of two engines."}, link.handshake,
        DurationRange{});
}

KvTransferLink default_transfer_link(const AcceleratorSpec& a) {
  KvTransferLink link;
  link.gb_per_s = a.nic_gb_per_s;
  return link;
}

Bytes kv_transfer_bytes(const ModelSpec& m, KvDtype dtype, const Parallelism& p,
                        std::int64_t tokens) {
  ModelSpec one_layer = m;  // Bytes per token of any one layer on one GPU.
  one_layer.layers = 1;
  one_layer.sliding_layers = 0;
  Parallelism one_stage = p;
  one_stage.pp = 1;
  const std::int64_t per_token = kv_bytes_per_token_per_gpu(one_layer, dtype, one_stage);
  const std::int64_t windowed =
      m.sliding_layers > 0 ? std::min(tokens, m.sliding_window) * m.sliding_layers : 0;
  const std::int64_t layer_tokens = tokens * m.full_layers() + windowed;
  // The stages of a pipeline read their own layers at the same time; the deepest one decides.
  return Bytes(per_token * ((layer_tokens + p.pp - 1) / p.pp));
}

double transfer_bytes_per_second(const KvTransferLink& link) {
  return link.gb_per_s * 1e9 * link.efficiency;
}

Duration transfer_time(const KvTransferLink& link, Bytes bytes) {
  return link.setup + Duration::from_seconds(static_cast<double>(bytes.value()) /
                                             transfer_bytes_per_second(link));
}

}  // namespace routesim::models
