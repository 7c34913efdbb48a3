// A small msgpack reader: what KV events need, and nothing a hostile sender could abuse.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace routesim::policies {

/// The type of a msgpack value.
enum class MsgType : std::uint8_t {
  kNil,
  kBool,
  kInt,  ///< Any integer format.
  kFloat,
  kString,
  kBytes,
  kArray,  ///< Followed by `count` values.
  kMap,    ///< Followed by `count` pairs.
  kExt,
};

/// The head of a value; strings and bytes include their content.
struct MsgValue {
  MsgType type = MsgType::kNil;
  bool boolean = false;
  bool negative = false;  ///< kInt: `integer` is the two's complement of a negative number.
  bool wide = false;      ///< kInt: written in one of the two 64-bit formats.
  std::uint64_t integer = 0;
  double real = 0;
  std::string_view text;  ///< kString, kBytes: points into the input.
  std::size_t count = 0;  ///< kArray, kMap.
};

/// Reads values one after the other. The first error sticks: everything after it fails too.
class MsgReader {
 public:
  MsgReader(std::span<const std::uint8_t> bytes, std::size_t max_depth)
      : bytes_(bytes), max_depth_(max_depth) {}

  /// The next value's head. False on truncation or an illegal byte. A count larger than the rest of
  /// the input could hold is refused, so callers may reserve memory by it.
  bool next(MsgValue& out) {
    out = {};
    std::uint64_t byte = 0;
    if (!error_.empty() || !take(1, byte)) return false;
    const auto head = static_cast<std::uint8_t>(byte);
    if (head < 0x80 || head >= 0xe0) {
      out.type = MsgType::kInt;
      out.negative = head >= 0xe0;
      out.integer =
          static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int8_t>(head)));
      return true;
    }
    if (head < 0x90) return take_count(head & 0x0f, MsgType::kMap, out);
    if (head < 0xa0) return take_count(head & 0x0f, MsgType::kArray, out);
    if (head < 0xc0) return take_text(head & 0x1f, MsgType::kString, out);
    return read_long(head, out);
  }
  /// Reads unsigned integers of up to 32 bits into `out`, the fast path of token lists, up to the
  /// first value of another format, where it stops without an error. Returns how many it read.
  std::size_t next_uint32s(std::span<std::uint32_t> out) {
    if (!error_.empty()) return 0;
    const std::uint8_t* p = bytes_.data() + at_;
    const std::uint8_t* const end = bytes_.data() + bytes_.size();
    std::size_t n = 0;
    for (; n < out.size() && p < end; ++n) {
      // Token ids take two or four bytes, at random: no branch may depend on which.
      const auto is_long = static_cast<unsigned>(p[0]) - 0xcdU;
      if (is_long <= 1 && end - p >= 5) [[likely]] {
        const std::uint32_t four = std::uint32_t{p[1]} << 24 | std::uint32_t{p[2]} << 16 |
                                   std::uint32_t{p[3]} << 8 | std::uint32_t{p[4]};
        out[n] = four >> (16 - 16 * is_long);
        p += 3 + 2 * is_long;
      } else if (p[0] < 0x80) {
        out[n] = *p++;
      } else if (p[0] == 0xcc && end - p >= 2) {
        out[n] = p[1];
        p += 2;
      } else {
        break;
      }
    }
    at_ = static_cast<std::size_t>(p - bytes_.data());
    return n;
  }
  /// Skips one whole value, refusing nesting deeper than the limit. Does not recurse.
  bool skip() {
    MsgValue head;
    return next(head) && skip_rest(head);
  }
  /// Skips the rest of a value whose head has just been read.
  bool skip_rest(const MsgValue& head) {
    const auto children = [](const MsgValue& v) {
      return v.type == MsgType::kArray ? v.count : v.type == MsgType::kMap ? 2 * v.count : 0;
    };
    std::vector<std::size_t>
        open;  // Values left at each level; no recursion, so no stack to smash.
    if (const std::size_t n = children(head)) open.push_back(n);
    while (!open.empty()) {
      if (open.size() > max_depth_) return fail("nested too deeply");
      if (open.back() == 0) {
        open.pop_back();
        continue;
      }
      --open.back();
      MsgValue v;
      if (!next(v)) return false;
      if (const std::size_t n = children(v)) open.push_back(n);
    }
    return true;
  }

  bool at_end() const { return at_ == bytes_.size(); }
  const std::string& error() const { return error_; }
  /// Records an error (the first one wins) and returns false.
  bool fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }

 private:
  bool take(std::size_t n, std::uint64_t& value) {
    if (bytes_.size() - at_ < n) return fail("truncated");
    value = 0;
    for (std::size_t i = 0; i < n; ++i) value = value << 8 | bytes_[at_++];
    return true;
  }
  bool take_text(std::size_t n, MsgType type, MsgValue& out) {
    if (bytes_.size() - at_ < n) return fail("truncated");
    out.type = type;
    out.text = {reinterpret_cast<const char*>(bytes_.data()) + at_, n};
    at_ += n;
    return true;
  }
  bool take_count(std::size_t n, MsgType type, MsgValue& out) {
    // Every element takes at least one byte, a pair two.
    const std::size_t least = type == MsgType::kMap ? 2 : 1;
    if (n > (bytes_.size() - at_) / least) return fail("truncated");
    out.type = type;
    out.count = n;
    return true;
  }
  // The formats 0xc0 to 0xdf: a head byte, then a big-endian number of 1, 2, 4 or 8 bytes.
  bool read_long(std::uint8_t head, MsgValue& out) {
    if (head >= 0xca && head <= 0xd3) return read_number(head, out);
    std::uint64_t n = 0;
    const auto sized = [&](int log2) { return take(std::size_t{1} << log2, n); };
    switch (head) {
      case 0xc0:
        return true;
      case 0xc2:
      case 0xc3:
        out.type = MsgType::kBool;
        out.boolean = head == 0xc3;
        return true;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return sized(head - 0xc4) && take_text(n, MsgType::kBytes, out);
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return sized(head - 0xc7) && take_text(n + 1, MsgType::kExt, out);
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return take_text((std::size_t{1} << (head - 0xd4)) + 1, MsgType::kExt, out);
      case 0xd9:
      case 0xda:
      case 0xdb:
        return sized(head - 0xd9) && take_text(n, MsgType::kString, out);
      case 0xdc:
      case 0xdd:
        return sized(head - 0xdc + 1) && take_count(n, MsgType::kArray, out);
      case 0xde:
      case 0xdf:
        return sized(head - 0xde + 1) && take_count(n, MsgType::kMap, out);
      default:
        return fail("illegal msgpack byte");
    }
  }
  // The formats 0xca to 0xd3: floats, unsigned and signed integers.
  bool read_number(std::uint8_t head, MsgValue& out) {
    std::uint64_t n = 0;
    if (head <= 0xcb) {
      if (!take(head == 0xca ? 4 : 8, n)) return false;
      out.type = MsgType::kFloat;
      out.real = head == 0xca ? std::bit_cast<float>(static_cast<std::uint32_t>(n))
                              : std::bit_cast<double>(n);
      return true;
    }
    const bool is_signed = head >= 0xd0;
    const int log2 = head - (is_signed ? 0xd0 : 0xcc);
    if (!take(std::size_t{1} << log2, n)) return false;
    out.type = MsgType::kInt;
    out.wide = log2 == 3;
    out.integer = n;
    if (!is_signed) return true;
    const int unused = 64 - (8 << log2);
    const std::int64_t value = static_cast<std::int64_t>(n << unused) >> unused;
    out.negative = value < 0;
    out.integer = static_cast<std::uint64_t>(value);
    return true;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t max_depth_;
  std::size_t at_ = 0;
  std::string error_;
};

}  // namespace routesim::policies
