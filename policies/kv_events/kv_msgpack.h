// A small msgpack reader and writer: what KV events need, and nothing a hostile sender could abuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routesim::policies {

/// What a msgpack value is.
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
  bool next(MsgValue& out);
  /// Reads unsigned integers of up to 32 bits into `out`, the fast path of token lists, up to the
  /// first value of another format, where it stops without an error. Returns how many it read.
  std::size_t next_uint32s(std::span<std::uint32_t> out);
  /// Skips one whole value, refusing nesting deeper than the limit. Does not recurse.
  bool skip();
  /// Skips the rest of a value whose head has just been read.
  bool skip_rest(const MsgValue& head);

  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t position() const { return at_; }
  const std::string& error() const { return error_; }
  /// Records an error (the first one wins) and returns false.
  bool fail(std::string message);

 private:
  bool take(std::size_t n, std::uint64_t& value);
  bool take_text(std::size_t n, MsgType type, MsgValue& out);
  bool take_count(std::size_t n, MsgType type, MsgValue& out);
  bool read_long(std::uint8_t head, MsgValue& out);
  bool read_number(std::uint8_t head, MsgValue& out);

  std::span<const std::uint8_t> bytes_;
  std::size_t max_depth_;
  std::size_t at_ = 0;
  std::string error_;
};

/// Appends values in their shortest form, except where a width is asked for.
class MsgWriter {
 public:
  void nil() { out_.push_back(0xc0); }
  void integer(std::int64_t v);
  void uint64(std::uint64_t v);  ///< Always the 9-byte format.
  void real(double v);
  void text(std::string_view v);
  void bytes(std::span<const std::uint8_t> v);
  void array(std::size_t n);
  void map(std::size_t n);
  std::vector<std::uint8_t> take() { return std::move(out_); }

 private:
  void put(std::uint8_t head, std::uint64_t v, int bytes);
  std::vector<std::uint8_t> out_;
};

}  // namespace routesim::policies
