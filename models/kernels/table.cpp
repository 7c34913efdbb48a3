#include "models/kernels/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "models/kernels/table_files.h"

namespace routesim::models::kernels {
namespace {

/// No axis, key list or section of a sound file is longer.
constexpr std::uint64_t kMostValues = 1U << 20U;

/// Numbers of seven bits a byte. After a cut all further numbers are 0, and `sound` tells.
class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : left_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      if (left_.empty()) break;
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 127U) << shift;
      if (byte < 128) return value;
    }
    sound_ = false;
    return 0;
  }

  std::int64_t difference() {
    const std::uint64_t n = number();
    const auto half = static_cast<std::int64_t>(n >> 1U);
    return (n & 1U) != 0 ? -half - 1 : half;
  }

  std::uint64_t count() {
    const std::uint64_t n = number();
    if (n > kMostValues) sound_ = false;
    return sound_ ? n : 0;
  }

  std::string_view text(std::uint64_t size) {
    if (size > left_.size()) sound_ = false;
    if (!sound_) return {};
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(size);
    return out;
  }

  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> out(count());
    for (std::int64_t& n : out) n = static_cast<std::int64_t>(number());
    return out;
  }

  bool sound() const { return sound_; }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool sound_ = true;
};

constexpr double kCodesPerUnit = 100;  ///< Of the logarithm of a time.

bool rises(const std::vector<std::int64_t>& axis) {
  return !axis.empty() && axis.front() >= 0 &&
         std::adjacent_find(axis.begin(), axis.end(), std::greater_equal<>()) == axis.end();
}

}  // namespace

std::optional<KernelTable> KernelTable::read(std::string_view bytes) {
  PackedReader in(bytes);
  KernelTable t;
  t.key_names_.resize(in.count());
  for (std::string& name : t.key_names_) name = in.text(in.number());
  t.x_ = in.numbers();
  t.y_ = in.numbers();
  const std::uint64_t entries = in.count();
  if (!in.sound() || !rises(t.x_) || !rises(t.y_)) return std::nullopt;
  const std::size_t cells = t.x_.size() * t.y_.size();
  if (entries == 0 || entries * cells > bytes.size()) return std::nullopt;
  t.codes_.reserve(entries * cells);
  for (std::uint64_t e = 0; e < entries; ++e) {
    for (std::size_t k = 0; k < t.keys(); ++k)
      t.keys_.push_back(static_cast<std::int64_t>(in.number()));
    std::int64_t row = 0, code = 0;
    for (std::size_t i = 0; i < cells; ++i) {
      const bool first = i % t.y_.size() == 0;
      code = (first ? row : code) + in.difference();
      if (first) row = code;
      if (std::abs(code) > std::numeric_limits<std::int16_t>::max()) return std::nullopt;
      t.codes_.push_back(static_cast<std::int16_t>(code));
    }
  }
  if (!in.sound() || !in.empty()) return std::nullopt;
  return t;
}

std::optional<std::size_t> KernelTable::find(const std::vector<std::int64_t>& wanted) const {
  for (std::size_t e = 0; e < entries(); ++e)
    if (std::equal(wanted.begin(), wanted.end(),
                   keys_.begin() + static_cast<std::ptrdiff_t>(e * keys())))
      return e;
  return std::nullopt;
}

double KernelTable::cell(std::size_t entry, std::size_t x, std::size_t y) const {
  return std::exp(codes_[(entry * x_.size() + x) * y_.size() + y] / kCodesPerUnit);
}

AxisPosition position(const std::vector<std::int64_t>& axis, double value) {
  const auto at = [&](std::size_t i) { return static_cast<double>(axis[i]); };
  if (value <= at(0)) return {};
  const std::size_t last = axis.size() - 1;
  if (value >= at(last))
    return {.low = last, .share = 0, .beyond = value / std::max(1.0, at(last))};
  const auto above =
      std::upper_bound(axis.begin(), axis.end(), value,
                       [](double v, std::int64_t a) { return v < static_cast<double>(a); });
  const auto low = static_cast<std::size_t>(above - axis.begin()) - 1;
  return {.low = low, .share = (value - at(low)) / (at(low + 1) - at(low)), .beyond = 1};
}

double KernelTable::us(std::size_t entry, double x, double y) const {
  return between(position(x_, x), position(y_, y),
                 [&](std::size_t i, std::size_t j) { return cell(entry, i, j); });
}

KernelLibrary::KernelLibrary(std::string name, std::string_view file) : name_(std::move(name)) {
  constexpr std::string_view kMagic = "RSKT\x01";
  if (file.substr(0, kMagic.size()) != kMagic) return;
  file.remove_prefix(kMagic.size());
  while (!file.empty()) {
    const auto length = static_cast<unsigned char>(file.front());
    if (file.size() < length + 5U) return;
    Section section{.name = file.substr(1, length), .bytes = {}};
    std::size_t size = 0;
    for (std::size_t i = 4; i-- > 0;)
      size = size << 8U | static_cast<unsigned char>(file[length + 1U + i]);
    file.remove_prefix(length + 5U);
    if (file.size() < size) return;
    section.bytes = file.substr(0, size);
    file.remove_prefix(size);
    sections_.push_back(section);
  }
}

std::optional<KernelTable> KernelLibrary::table(std::string_view section) const {
  for (const Section& s : sections_)
    if (s.name == section) return KernelTable::read(s.bytes);
  return std::nullopt;
}

bool KernelLibrary::has(std::string_view section) const {
  return std::any_of(sections_.begin(), sections_.end(),
                     [&](const Section& s) { return s.name == section; });
}

std::vector<std::string_view> KernelLibrary::sections() const {
  std::vector<std::string_view> names;
  for (const Section& s : sections_) names.push_back(s.name);
  return names;
}

const KernelLibrary* KernelLibrary::of(std::string_view accelerator, ServingEngine engine) {
  struct Shipped {
    std::string_view accelerator;
    ServingEngine engine;
    KernelLibrary library;
  };
  using enum ServingEngine;
  // The catalogue's names. A variant with other memory or clocks (PCIe, NVL) has no table.
  static const std::array<Shipped, 12> kLibraries = {{
      {"A100-80", kVllm, {"A100-80 with vLLM 0.14", table_file("a100.vllm")}},
      {"H100-SXM", kVllm, {"H100-SXM with vLLM 0.24", table_file("h100.vllm")}},
      {"H200", kVllm, {"H200 with vLLM 0.24", table_file("h200.vllm")}},
      {"B200", kVllm, {"B200 with vLLM 0.24", table_file("b200.vllm")}},
      {"B300", kVllm, {"B300 with vLLM 0.24", table_file("b300.vllm")}},
      {"GB200", kVllm, {"GB200 with vLLM 0.24", table_file("gb200.vllm")}},
      {"L40S", kVllm, {"L40S with vLLM 0.24", table_file("l40s.vllm")}},
      {"RTX-PRO-6000", kVllm, {"RTX-PRO-6000 with vLLM 0.24", table_file("rtx_pro_6000.vllm")}},
      {"A100-80", kSglang, {"A100-80 with SGLang 0.5.10", table_file("a100.sglang")}},
      {"H100-SXM", kSglang, {"H100-SXM with SGLang 0.5.14", table_file("h100.sglang")}},
      {"H200", kSglang, {"H200 with SGLang 0.5.14", table_file("h200.sglang")}},
      {"B200", kSglang, {"B200 with SGLang 0.5.14", table_file("b200.sglang")}},
  }};
  const KernelLibrary* other = nullptr;
  for (const Shipped& s : kLibraries) {
    if (s.accelerator != accelerator) continue;
    if (s.engine == engine) return &s.library;
    other = &s.library;
  }
  return other;
}

}  // namespace routesim::models::kernels
