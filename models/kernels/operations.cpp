#include "models/kernels/operations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "models/roofline_parts.h"

namespace routesim::models::kernels {
namespace {

/// Products are measured on constant weights, which take less power. On random data 512 to 4,096
/// rows take 12 % longer, up to 64 rows as long (`scenarios/measured/gpu_kernels`, products.csv,
/// one H100 and one H200). Between the two, in proportion.
constexpr double kRandomData = 0.12;
constexpr double kRandomFrom = 64, kRandomAll = 512;

double random_data(double rows) {
  return 1 + kRandomData * std::clamp((rows - kRandomFrom) / (kRandomAll - kRandomFrom), 0.0, 1.0);
}

double ratio(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(std::max<std::int64_t>(1, b));
}

/// Four entries around (n, k) and how much each weighs in the logarithm of time, or nothing where
/// the table has no corner.
struct Corner {
  std::size_t entry = 0;
  double weight = 0;
};

/// The values of a key column, sorted.
std::vector<std::int64_t> column(const KernelTable& t, std::size_t which) {
  std::vector<std::int64_t> values;
  for (std::size_t e = 0; e < t.entries(); ++e) values.push_back(t.key(e, which));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// The measured values on both sides of `value` and its share of the way in the logarithm.
struct Sides {
  std::int64_t low = 0, high = 0;
  double share = 0;
};
Sides sides(const std::vector<std::int64_t>& values, std::int64_t value) {
  const auto above = std::lower_bound(values.begin(), values.end(), value);
  if (above == values.end()) return {values.back(), values.back(), 0};
  if (*above == value || above == values.begin()) return {*above, *above, 0};
  const std::int64_t low = *(above - 1);
  return {low, *above, std::log(ratio(value, low)) / std::log(ratio(*above, low))};
}

std::vector<Corner> corners(const KernelTable& t, std::int64_t n, std::int64_t k) {
  const Sides in_n = sides(column(t, 0), n), in_k = sides(column(t, 1), k);
  std::vector<Corner> out;
  double all = 0;
  for (const auto& [a, wa] : {std::pair{in_n.low, 1 - in_n.share}, {in_n.high, in_n.share}})
    for (const auto& [b, wb] : {std::pair{in_k.low, 1 - in_k.share}, {in_k.high, in_k.share}}) {
      if (wa * wb <= 0) continue;
      const auto entry = t.find({a, b});
      if (!entry) continue;  // The largest of both was not measured.
      out.push_back({*entry, wa * wb});
      all += wa * wb;
    }
  for (Corner& c : out) c.weight /= all;
  return out;
}

/// The entry with the least distance `far(entry)`, and that distance.
struct Closest {
  std::size_t entry = 0;
  double far = std::numeric_limits<double>::infinity();
};
template <typename Far>
Closest closest(const KernelTable& t, Far far) {
  Closest best;
  for (std::size_t e = 0; e < t.entries(); ++e)
    if (const double distance = far(e); distance < best.far) best = {e, distance};
  return best;
}

/// Nanoseconds of all cells at `value` of the first key, between the two entries around it that
/// have the `other` keys.
std::vector<double> blended(const KernelTable& t, std::int64_t value,
                            const std::vector<std::int64_t>& other = {}) {
  const auto entry = [&](std::int64_t first) {
    std::vector<std::int64_t> keys = {first};
    keys.insert(keys.end(), other.begin(), other.end());
    return t.find(keys);
  };
  std::vector<std::int64_t> values = column(t, 0);
  std::erase_if(values, [&](std::int64_t v) { return !entry(v); });
  const Sides in = sides(values, value);
  const auto low = entry(in.low), high = entry(in.high);
  std::vector<double> ns;
  for (std::size_t i = 0; i < t.x().size(); ++i)
    for (std::size_t j = 0; j < t.y().size(); ++j)
      ns.push_back(1e3 * (t.cell(*low, i, j) * (1 - in.share) + t.cell(*high, i, j) * in.share));
  return ns;
}

}  // namespace

std::string expert_section(const KernelLibrary& library, const ExpertShape& s) {
  for (const std::string& kernel : s.kernels) {
    std::string section = "moe/" + s.dtype + "/" + kernel;
    if (library.has(section)) return section;
  }
  return {};
}

double Curve::at(double value) const {
  if (x.empty()) return 0;
  return between(position(x, value), {}, [&](std::size_t i, std::size_t) { return ns[i]; });
}

double Sheet::at(double sequences, double length) const {
  if (x.empty()) return 0;
  return between(position(x, sequences), position(y, length),
                 [&](std::size_t i, std::size_t j) { return ns[i * y.size() + j]; });
}

const KernelTable* Operations::table(const std::string& section) {
  auto it = tables_.find(section);
  if (it == tables_.end()) it = tables_.emplace(section, library_.table(section)).first;
  ROUTESIM_CHECK(it->second.has_value(), "a covered deployment lacks a table");
  return &*it->second;
}

void Operations::note(const std::string& section, Origin origin) {
  const auto [it, fresh] = used_.emplace(section, origin);
  if (!fresh) it->second = std::max(it->second, origin);
}

Curve Operations::product(std::string_view format, std::int64_t n, std::int64_t k) {
  const std::string section = "gemm/" + std::string(format);
  const KernelTable* t = table(section);
  const std::vector<Corner> around = corners(*t, n, k);
  // Beyond the largest measured width, time grows in proportion to the weights.
  double at_n = 0, at_k = 0;
  for (const Corner& c : around) {
    at_n += c.weight * std::log(as_real(t->key(c.entry, 0)));
    at_k += c.weight * std::log(as_real(t->key(c.entry, 1)));
  }
  const double beyond = std::max(1.0, as_real(n) / std::exp(at_n) * (1 - 1e-9)) *
                        std::max(1.0, as_real(k) / std::exp(at_k) * (1 - 1e-9));
  note(section, beyond > 1.01 ? Origin::kNearShape : Origin::kTable);
  Curve out{.x = t->x(), .ns = {}};
  for (std::size_t i = 0; i < out.x.size(); ++i) {
    double log_us = 0;
    for (const Corner& c : around) log_us += c.weight * std::log(t->cell(c.entry, i));
    out.ns.push_back(std::exp(log_us) * beyond * 1e3 * random_data(as_real(out.x[i])));
  }
  return out;
}

Curve Operations::by_columns(const std::string& section, std::int64_t k) {
  const KernelTable* t = table(section);
  note(section, Origin::kTable);
  return {.x = t->x(), .ns = blended(*t, k)};
}

Sheet Operations::attention(const std::string& phase, const AttentionShape& s) {
  const bool decoding = phase == "decode";
  const std::string format = s.kv == KvDtype::kFp8 ? "fp8/" : "bf16/";
  // Heads of 128 were measured on every GPU.
  std::int64_t width = s.head_dim;
  const auto with = [&](const std::string& f) { return phase + "/" + f + std::to_string(width); };
  if (!library_.has(with(format)) && !library_.has(with("bf16/"))) width = 128;
  const std::string section = with(library_.has(with(format)) ? format : "bf16/");
  const KernelTable* t = table(section);
  // The same heads, else those of the same KV heads (a decode reads them, a prompt computes heads).
  const auto [best, least] = closest(*t, [&](std::size_t e) {
    const double heads = std::abs(std::log(ratio(t->key(e, 0), s.heads)));
    const double kv = std::abs(std::log(ratio(t->key(e, 1), s.kv_heads)));
    const std::int64_t window = t->key(e, 2);
    const double windows = window == s.window ? 0
                           : (window == 0) != (s.window == 0)
                               ? 100
                               : std::abs(std::log(ratio(window, s.window)));
    return (decoding ? 1 : 4) * heads + (decoding ? 4 : 1) * kv + 10 * windows;
  });
  const double scale =
      (decoding ? ratio(s.kv_heads, t->key(best, 1)) : ratio(s.heads, t->key(best, 0))) *
      ratio(s.head_dim, width);
  note(section, least > 0 || width != s.head_dim ? Origin::kNearShape : Origin::kTable);
  const bool unwindowed = s.window > 0 && t->key(best, 2) == 0;
  Sheet out{.x = t->x(), .y = t->y(), .ns = {}};
  for (std::size_t i = 0; i < out.x.size(); ++i)
    for (std::size_t j = 0; j < out.y.size(); ++j) {
      const double y = as_real(out.y[j]), w = as_real(s.window);
      double us = t->cell(best, i, j);
      if (unwindowed && y > w)
        us = decoding ? t->us(best, as_real(out.x[i]), w)
                      : t->us(best, as_real(out.x[i]), w) * (2 * y / w - 1);
      out.ns.push_back(us * std::max(scale, 0.5) * 1e3);
    }
  return out;
}

Sheet Operations::decode(const AttentionShape& shape) { return attention("decode", shape); }
Sheet Operations::context(const AttentionShape& shape) { return attention("context", shape); }

Sheet Operations::mla(std::string_view kind, std::string_view phase, std::int64_t heads,
                      std::int64_t hidden, KvDtype kv, std::string_view format) {
  const auto with = [&](const char* cache) {
    return std::string(kind) + "_" + std::string(phase) + cache + std::string(format);
  };
  const bool narrow = kv == KvDtype::kFp8 && library_.has(with("/fp8/"));
  const std::string section = with(narrow ? "/fp8/" : "/bf16/");
  const KernelTable* t = table(section);
  const std::vector<std::int64_t> other =
      kind == "mla" ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{hidden};
  note(section, Origin::kTable);
  return {.x = t->x(), .y = t->y(), .ns = blended(*t, heads, other)};
}

// Each head has a state, and keys and queries go by groups of heads: time is that of the heads.
Sheet Operations::delta_net(std::string_view phase, std::int64_t key_heads, std::int64_t heads) {
  const std::string section = "gdn_" + std::string(phase);
  const KernelTable* t = table(section);
  const auto [best, least] = closest(*t, [&](std::size_t e) {
    return 4 * std::abs(std::log(ratio(t->key(e, 1), heads))) +
           std::abs(std::log(ratio(t->key(e, 0), key_heads)));
  });
  note(section, least > 0 ? Origin::kNearShape : Origin::kTable);
  const double scale = ratio(heads, t->key(best, 1));
  Sheet out{.x = t->x(), .y = t->y(), .ns = {}};
  for (std::size_t i = 0; i < out.x.size(); ++i)
    for (std::size_t j = 0; j < out.y.size(); ++j)
      out.ns.push_back(t->cell(best, i, j) * scale * 1e3);
  return out;
}

// A shape that was not measured is scaled from the closest one of the same kernel: at as many rows
// for an expert, by the weights that one GPU holds, above the time of an empty kernel.
Curve Operations::experts(const ExpertShape& s) {
  const std::string section = expert_section(library_, s);
  const KernelTable* t = table(section);
  Curve out;
  const std::vector<std::int64_t> wanted = {s.hidden, s.inter, s.topk, s.experts, s.tp, s.ep};
  const auto [best, least] = closest(*t, [&](std::size_t e) {
    double far = 0;
    for (std::size_t k = 0; k < wanted.size(); ++k)
      far += std::abs(std::log(ratio(t->key(e, k), wanted[k])));
    return far;
  });
  const auto weights = [](std::int64_t hidden, std::int64_t inter, std::int64_t experts,
                          std::int64_t tp, std::int64_t ep) {
    return as_real(hidden) * as_real(inter) * as_real(experts) / as_real(tp * ep);
  };
  const double larger =
      weights(s.hidden, s.inter, s.experts, s.tp, s.ep) /
      weights(t->key(best, 0), t->key(best, 1), t->key(best, 3), t->key(best, 4), t->key(best, 5));
  const double denser = ratio(s.topk, s.experts) / ratio(t->key(best, 2), t->key(best, 3));
  note(section, least > 0 ? Origin::kNearShape : Origin::kTable);
  constexpr double kEmptyUs = 25;  // Sorting and the launches: Marlin's least of all tables is 27.
  out.x = t->x();
  for (const std::int64_t m : out.x) {
    const double us = t->us(best, as_real(m) * denser);
    out.ns.push_back(1e3 * (kEmptyUs + std::max(0.0, us - kEmptyUs) * larger));
  }
  return out;
}

// The sizes of the tables are counted in values of two bytes: at 512 M of them eight H100 move 398
// GB/s, of bytes it were 199.
Curve Operations::collective(const std::string& section, std::int64_t gpus, std::int64_t width) {
  Curve out;
  if (gpus == 1) return out;
  const KernelTable* t = library_.has(section) ? table(section) : nullptr;
  const std::optional<std::size_t> entry = t != nullptr ? t->find({gpus}) : std::nullopt;
  note(section, entry ? Origin::kTable : Origin::kPrinciples);
  const AllReduce principles(gpu_, gpus);
  out.x = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  for (const std::int64_t tokens : out.x) {
    const double values = as_real(tokens) * as_real(width);
    out.ns.push_back(entry ? t->us(*entry, values) * 1e3 : principles.ns(2 * values));
  }
  return out;
}

}  // namespace routesim::models::kernels
