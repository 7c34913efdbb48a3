#include "policies/kv_events/kv_msgpack.h"

#include <bit>
#include <utility>

namespace routesim::policies {

bool MsgReader::fail(std::string message) {
  if (error_.empty()) error_ = std::move(message);
  return false;
}

bool MsgReader::take(std::size_t n, std::uint64_t& value) {
  if (bytes_.size() - at_ < n) return fail("truncated");
  value = 0;
  for (std::size_t i = 0; i < n; ++i) value = value << 8 | bytes_[at_++];
  return true;
}

bool MsgReader::take_text(std::size_t n, MsgType type, MsgValue& out) {
  if (bytes_.size() - at_ < n) return fail("truncated");
  out.type = type;
  out.text = {reinterpret_cast<const char*>(bytes_.data()) + at_, n};
  at_ += n;
  return true;
}

bool MsgReader::take_count(std::size_t n, MsgType type, MsgValue& out) {
  // Every element takes at least one byte, a pair two.
  const std::size_t least = type == MsgType::kMap ? 2 : 1;
  if (n > (bytes_.size() - at_) / least) return fail("truncated");
  out.type = type;
  out.count = n;
  return true;
}

bool MsgReader::next(MsgValue& out) {
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

// The formats 0xca to 0xd3: floats, unsigned and signed integers.
bool MsgReader::read_number(std::uint8_t head, MsgValue& out) {
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

// The formats 0xc0 to 0xdf: a head byte, then a big-endian number of 1, 2, 4 or 8 bytes.
bool MsgReader::read_long(std::uint8_t head, MsgValue& out) {
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

std::size_t MsgReader::next_uint32s(std::span<std::uint32_t> out) {
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

bool MsgReader::skip() {
  MsgValue head;
  return next(head) && skip_rest(head);
}

bool MsgReader::skip_rest(const MsgValue& head) {
  const auto children = [](const MsgValue& v) {
    return v.type == MsgType::kArray ? v.count : v.type == MsgType::kMap ? 2 * v.count : 0;
  };
  std::vector<std::size_t> open;  // Values left at each level; no recursion, so no stack to smash.
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

void MsgWriter::put(std::uint8_t head, std::uint64_t v, int bytes) {
  out_.push_back(head);
  for (int i = bytes - 1; i >= 0; --i) out_.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
}

void MsgWriter::integer(std::int64_t v) {
  const auto u = static_cast<std::uint64_t>(v);
  if (v >= 0) {
    if (u < 0x80) return out_.push_back(static_cast<std::uint8_t>(u));
    const int log2 = u <= 0xff ? 0 : u <= 0xffff ? 1 : u <= 0xffffffff ? 2 : 3;
    return put(static_cast<std::uint8_t>(0xcc + log2), u, 1 << log2);
  }
  if (v >= -32) return out_.push_back(static_cast<std::uint8_t>(u));
  const int log2 = v >= INT8_MIN ? 0 : v >= INT16_MIN ? 1 : v >= INT32_MIN ? 2 : 3;
  put(static_cast<std::uint8_t>(0xd0 + log2), u, 1 << log2);
}

void MsgWriter::uint64(std::uint64_t v) { put(0xcf, v, 8); }
void MsgWriter::real(double v) { put(0xcb, std::bit_cast<std::uint64_t>(v), 8); }

void MsgWriter::text(std::string_view v) {
  const std::size_t n = v.size();
  if (n < 32)
    out_.push_back(static_cast<std::uint8_t>(0xa0 | n));
  else
    n <= 0xff ? put(0xd9, n, 1) : n <= 0xffff ? put(0xda, n, 2) : put(0xdb, n, 4);
  out_.insert(out_.end(), v.begin(), v.end());
}

void MsgWriter::bytes(std::span<const std::uint8_t> v) {
  const std::size_t n = v.size();
  n <= 0xff ? put(0xc4, n, 1) : n <= 0xffff ? put(0xc5, n, 2) : put(0xc6, n, 4);
  out_.insert(out_.end(), v.begin(), v.end());
}

void MsgWriter::array(std::size_t n) {
  if (n < 16) return out_.push_back(static_cast<std::uint8_t>(0x90 | n));
  n <= 0xffff ? put(0xdc, n, 2) : put(0xdd, n, 4);
}

void MsgWriter::map(std::size_t n) {
  if (n < 16) return out_.push_back(static_cast<std::uint8_t>(0x80 | n));
  n <= 0xffff ? put(0xde, n, 2) : put(0xdf, n, 4);
}

}  // namespace routesim::policies
