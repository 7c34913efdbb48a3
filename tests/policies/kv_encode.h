// Writes vLLM's KV events as msgpack, for tests and benchmarks: what an engine
// would send.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "policies/kv_events/kv_events.h"

namespace routesim::policies {

/// How events are written: the positional form, or the maps of newer vLLM.
enum class KvEncoding : std::uint8_t { kArray, kMap };

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

inline void MsgWriter::put(std::uint8_t head, std::uint64_t v, int bytes) {
  out_.push_back(head);
  for (int i = bytes - 1; i >= 0; --i) out_.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
}

inline void MsgWriter::integer(std::int64_t v) {
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

inline void MsgWriter::uint64(std::uint64_t v) { put(0xcf, v, 8); }
inline void MsgWriter::real(double v) { put(0xcb, std::bit_cast<std::uint64_t>(v), 8); }

inline void MsgWriter::text(std::string_view v) {
  const std::size_t n = v.size();
  if (n < 32)
    out_.push_back(static_cast<std::uint8_t>(0xa0 | n));
  else
    n <= 0xff ? put(0xd9, n, 1) : n <= 0xffff ? put(0xda, n, 2) : put(0xdb, n, 4);
  out_.insert(out_.end(), v.begin(), v.end());
}

inline void MsgWriter::bytes(std::span<const std::uint8_t> v) {
  const std::size_t n = v.size();
  n <= 0xff ? put(0xc4, n, 1) : n <= 0xffff ? put(0xc5, n, 2) : put(0xc6, n, 4);
  out_.insert(out_.end(), v.begin(), v.end());
}

inline void MsgWriter::array(std::size_t n) {
  if (n < 16) return out_.push_back(static_cast<std::uint8_t>(0x90 | n));
  n <= 0xffff ? put(0xdc, n, 2) : put(0xdd, n, 4);
}

inline void MsgWriter::map(std::size_t n) {
  if (n < 16) return out_.push_back(static_cast<std::uint8_t>(0x80 | n));
  n <= 0xffff ? put(0xde, n, 2) : put(0xdf, n, 4);
}

/// Writes the fields of one event, positional or named.
class EventEncoder {
 public:
  EventEncoder(MsgWriter& out, KvEncoding encoding)
      : out_(out), map_(encoding == KvEncoding::kMap) {}

  void operator()(const BlockStored& e) {
    begin("BlockStored", 12);
    name("block_hashes"), hashes(e.hashes);
    name("parent_block_hash");
    e.parent == 0 ? out_.nil() : out_.uint64(e.parent);
    name("token_ids"), out_.array(e.tokens.size());
    for (const std::uint32_t t : e.tokens) out_.integer(t);
    name("block_size"), out_.integer(e.block_size);
    name("lora_id"), maybe(e.lora_id);
    name("medium"), medium(e.medium);
    name("lora_name"), maybe(e.lora_name);
    name("extra_keys"), extra_keys(e.extra_keys);
    name("group_idx"), maybe(e.group_idx);
    name("kv_cache_spec_kind"), maybe(e.kv_cache_spec_kind);
    name("kv_cache_spec_sliding_window"), maybe(e.sliding_window);
  }
  void operator()(const BlockRemoved& e) {
    begin("BlockRemoved", 4);
    name("block_hashes"), hashes(e.hashes);
    name("medium"), medium(e.medium);
    name("group_idx"), maybe(e.group_idx);
  }
  void operator()(const AllBlocksCleared&) { begin("AllBlocksCleared", 1); }

 private:
  void begin(std::string_view tag, std::size_t fields) {
    map_ ? out_.map(fields) : out_.array(fields);
    name("type");
    out_.text(tag);
  }
  void name(std::string_view field) {
    if (map_) out_.text(field);
  }
  void hashes(const std::vector<std::uint64_t>& list) {
    out_.array(list.size());
    for (const std::uint64_t h : list) out_.uint64(h);
  }
  void medium(const std::string& m) { m.empty() ? out_.nil() : out_.text(m); }
  void maybe(const std::optional<std::int64_t>& v) { v ? out_.integer(*v) : out_.nil(); }
  void maybe(const std::optional<std::uint32_t>& v) { v ? out_.integer(*v) : out_.nil(); }
  void maybe(const std::optional<std::string>& v) { v ? out_.text(*v) : out_.nil(); }
  void extra_keys(const std::optional<std::vector<BlockExtra>>& blocks) {
    if (!blocks) return out_.nil();
    out_.array(blocks->size());
    for (const BlockExtra& identifiers : *blocks) {
      if (identifiers.empty()) {
        out_.nil();
        continue;
      }
      out_.array(identifiers.size());
      for (const std::string& id : identifiers) out_.text(id);
    }
  }

  MsgWriter& out_;
  bool map_;
};

/// Writes a batch; hashes are always written as uint64 so that decoders accept
/// them.
inline std::vector<std::uint8_t> encode_kv_batch(const KvEventBatch& batch,
                                                 KvEncoding encoding = KvEncoding::kArray) {
  MsgWriter out;
  out.array(3);
  out.real(batch.timestamp);
  out.array(batch.events.size());
  for (const KvEvent& e : batch.events) std::visit(EventEncoder(out, encoding), e);
  // vLLM sends the field always, as nil where there is no rank.
  if (batch.data_parallel_rank)
    out.integer(*batch.data_parallel_rank);
  else
    out.nil();
  return out.take();
}

}  // namespace routesim::policies
