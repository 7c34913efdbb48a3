// Measured times of one GPU operation. Immutable once read; any thread may ask.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/specs.h"

namespace routesim::models::kernels {

/// Times by keys (the shape of the operation), over one axis or two (the size of the batch).
/// Lookups of keys are linear in the entries, and meant for the start of a run.
class KernelTable {
 public:
  /// A section of a table file, as tools/kernels/import_kernels.py writes it. Nothing when the
  /// bytes are not such a section.
  static std::optional<KernelTable> read(std::string_view bytes);

  std::size_t entries() const { return codes_.size() / (x_.size() * y_.size()); }
  std::size_t keys() const { return key_names_.size(); }
  const std::vector<std::string>& key_names() const { return key_names_; }
  std::int64_t key(std::size_t entry, std::size_t column) const {
    return keys_[entry * keys() + column];
  }
  /// The entry with exactly these keys.
  std::optional<std::size_t> find(const std::vector<std::int64_t>& wanted) const;

  const std::vector<std::int64_t>& x() const { return x_; }
  const std::vector<std::int64_t>& y() const { return y_; }
  /// Microseconds at a point of the grid, within 0.5 % of what was measured.
  double cell(std::size_t entry, std::size_t x, std::size_t y = 0) const;
  /// Microseconds between points: linear in both axes. The first value holds below an axis, and
  /// beyond its end time grows in proportion.
  double us(std::size_t entry, double x, double y = 1) const;

 private:
  std::vector<std::string> key_names_;
  std::vector<std::int64_t> x_, y_;
  std::vector<std::int64_t> keys_;   ///< Entry by entry.
  std::vector<std::int16_t> codes_;  ///< 100 ln(us); entry by entry, x by x, y by y.
};

/// Where a value lies on an axis: between the points `low` and `low` + 1, at `share` of the way,
/// and `beyond` (1 inside the axis) times the last point.
struct AxisPosition {
  std::size_t low = 0;
  double share = 0;
  double beyond = 1;
};
AxisPosition position(const std::vector<std::int64_t>& axis, double value);

/// Linear between the points of a grid around (x, y); `at(i, j)` gives its values.
template <typename At>
double between(const AxisPosition& x, const AxisPosition& y, At at) {
  const auto along = [&](std::size_t i) {
    const double low = at(i, y.low);
    return y.share > 0 ? low + (at(i, y.low + 1) - low) * y.share : low;
  };
  const double low = along(x.low);
  return (x.share > 0 ? low + (along(x.low + 1) - low) * x.share : low) * x.beyond * y.beyond;
}

/// The operations measured on one GPU with one engine.
class KernelLibrary {
 public:
  /// The tables that come with routesim for an accelerator of the catalogue, or null. Where the
  /// engine was not measured on it, those of the other engine: most kernels are the same.
  static const KernelLibrary* of(std::string_view accelerator,
                                 ServingEngine engine = ServingEngine::kVllm);

  /// `file` must outlive the library. A file cut short has the sections before the cut.
  KernelLibrary(std::string name, std::string_view file);

  const std::string& name() const { return name_; }
  /// Reads a section, as "gemm/fp8" or "decode/bf16/128"; nothing where it was not measured.
  std::optional<KernelTable> table(std::string_view section) const;
  bool has(std::string_view section) const;
  std::vector<std::string_view> sections() const;

 private:
  struct Section {
    std::string_view name, bytes;
  };
  std::string name_;
  std::vector<Section> sections_;
};

}  // namespace routesim::models::kernels
