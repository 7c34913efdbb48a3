// What one operation of a model takes on one GPU: from its table, else from a shape that is close,
// else from first principles. Made at the start of a run; not thread-safe, for it keeps a list of
// what it answered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/kernels/table.h"
#include "models/specs.h"

namespace routesim::models::kernels {

/// How well the time of an operation is known, from best to least.
enum class Origin {
  kTable,       ///< Measured for this very shape, or between two measured shapes.
  kNearShape,   ///< Scaled by bytes from a measured shape of the same kernel.
  kPrinciples,  ///< Bytes and FLOP at the accelerator's efficiencies: nothing was measured.
};

/// One time over the size of a batch: nanoseconds at rising points, linear between them.
struct Curve {
  std::vector<std::int64_t> x;
  std::vector<double> ns;
  double at(double value) const;
};

/// One time over sequences and their length; `ns` is x by y.
struct Sheet {
  std::vector<std::int64_t> x, y;
  std::vector<double> ns;
  double at(double sequences, double length) const;
};

/// What one GPU computes of one kind of attention layer.
struct AttentionShape {
  std::int64_t heads = 1, kv_heads = 1;
  std::int64_t head_dim = 128;
  std::int64_t window = 0;  ///< 0: everything.
  KvDtype kv = KvDtype::kBf16;
};

/// What one GPU computes of one layer's routed experts.
struct ExpertShape {
  std::string dtype = "bfloat16";         ///< As tables name formats.
  std::vector<std::string> kernels = {};  ///< The first that was measured is taken.
  std::int64_t hidden = 0, inter = 0, topk = 0, experts = 0;
  std::int64_t tp = 1, ep = 1;
};

/// The section of the experts' kernel that is taken; empty where none was measured.
std::string expert_section(const KernelLibrary& library, const ExpertShape& shape);

class Operations {
 public:
  /// Both must outlive this.
  Operations(const KernelLibrary& library, const AcceleratorSpec& gpu)
      : library_(library), gpu_(gpu) {}

  /// A product of [tokens, k] and [k, n] by tokens. `format` is that of tables: "bfloat16", "fp8",
  /// "fp8_block", "nvfp4".
  Curve product(std::string_view format, std::int64_t n, std::int64_t k);
  /// Quantising activations of `k` columns to fp8, and finding their scales, by tokens.
  Curve quantise(std::int64_t k) { return by_columns("quantize/scale_matrix", k); }
  Curve find_scale(std::int64_t k) { return by_columns("quantize/computescale", k); }
  /// One decode step of a layer, by sequences and context.
  Sheet decode(const AttentionShape& shape);
  /// Causal attention of whole prompts, by prompts and their length.
  Sheet context(const AttentionShape& shape);
  /// All of an MLA layer but its norms, its projections included, in the formats of tables. `kind`
  /// "mla", or with an indexer "dsa" of models `hidden` wide.
  Sheet mla(std::string_view kind, std::string_view phase, std::int64_t heads, std::int64_t hidden,
            KvDtype kv, std::string_view format);
  /// Convolution and rule of a gated delta net on one GPU, without its projections: "decode" by
  /// sequences, "context" by prompts and their length.
  Sheet delta_net(std::string_view phase, std::int64_t key_heads, std::int64_t heads);
  /// The routed experts of a layer, by tokens.
  Curve experts(const ExpertShape& shape);
  /// A collective among `gpus` of `width` bf16 values a token, by tokens: "all_reduce/graph",
  /// "nccl/all_gather" (of all that arrives) or "nccl/reduce_scatter" (of all that leaves).
  Curve collective(const std::string& section, std::int64_t gpus, std::int64_t width);

  /// The kernels of what was answered, by their sections.
  const std::map<std::string, Origin>& used() const { return used_; }

 private:
  /// Must be there: not_covered() looked.
  const KernelTable* table(const std::string& section);
  void note(const std::string& section, Origin origin);
  Curve by_columns(const std::string& section, std::int64_t k);
  Sheet attention(const std::string& phase, const AttentionShape& shape);

  const KernelLibrary& library_;
  const AcceleratorSpec& gpu_;
  std::map<std::string, std::optional<KernelTable>> tables_;
  std::map<std::string, Origin> used_;
};

}  // namespace routesim::models::kernels
