#include "policies/kv_events/kv_events.h"

#include <limits>
#include <utility>

#include "policies/kv_events/kv_msgpack.h"

namespace routesim::policies {
namespace {

constexpr std::uint32_t kMaxGroup = (1u << 24) - 2;  // What a row of the index can hold.

// Positions of the array form, which the map form names.
enum Field : int {
  kHashes = 1,
  kParent = 2,
  kTokens = 3,
  kBlockSize = 4,
  kLoraId = 5,
  kMedium = 6,
  kLoraName = 7,
  kExtraKeys = 8,
  kGroup = 9,
  kKind = 10,
  kWindow = 11,
  kUnknownField = 99,
};
constexpr std::array<std::pair<std::string_view, Field>, 11> kFieldNames = {{
    {"block_hashes", kHashes},
    {"parent_block_hash", kParent},
    {"token_ids", kTokens},
    {"block_size", kBlockSize},
    {"lora_id", kLoraId},
    {"medium", kMedium},
    {"lora_name", kLoraName},
    {"extra_keys", kExtraKeys},
    {"group_idx", kGroup},
    {"kv_cache_spec_kind", kKind},
    {"kv_cache_spec_sliding_window", kWindow},
}};
// BlockRemoved has hashes, medium and group at positions 1, 2, 3.
constexpr std::array<Field, 4> kRemovedPositions = {kUnknownField, kHashes, kMedium, kGroup};

enum class Tag : std::uint8_t { kStored, kRemoved, kCleared };

std::optional<Tag> tag_of(std::string_view name) {
  if (name == "BlockStored") return Tag::kStored;
  if (name == "BlockRemoved") return Tag::kRemoved;
  if (name == "AllBlocksCleared") return Tag::kCleared;
  return std::nullopt;
}

/// Decodes one event at the reader's position.
class EventDecoder {
 public:
  explicit EventDecoder(MsgReader& in) : in_(in) {}

  bool decode(KvEvent& out) {
    MsgValue head;
    if (!in_.next(head)) return false;
    if (head.type == MsgType::kMap) return decode_map(head.count, out);
    if (head.type != MsgType::kArray || head.count == 0)
      return in_.fail("malformed tagged union: an event is a non-empty array or a map");
    MsgValue name;
    if (!in_.next(name)) return false;
    if (name.type != MsgType::kString) return in_.fail("event tag is not a string");
    const auto tag = tag_of(name.text);
    if (!tag) return unknown_tag(name.text);
    const std::size_t required = *tag == Tag::kStored ? 5 : *tag == Tag::kRemoved ? 2 : 1;
    if (head.count < required) return in_.fail("event has too few fields");
    for (std::size_t i = 1; i < head.count; ++i)
      if (!field(position(*tag, i))) return false;
    return finish(*tag, out);
  }

 private:
  static Field position(Tag tag, std::size_t i) {
    if (tag == Tag::kStored && i <= kWindow) return static_cast<Field>(i);
    if (tag == Tag::kRemoved && i < kRemovedPositions.size()) return kRemovedPositions[i];
    return kUnknownField;
  }

  bool unknown_tag(std::string_view name) {
    return in_.fail("unknown vLLM event tag \"" + std::string(name.substr(0, 64)) + "\"");
  }

  // The tag may stand anywhere in a map, but the fields mean the same for all tags.
  bool decode_map(std::size_t count, KvEvent& out) {
    std::optional<Tag> tag;
    for (std::size_t i = 0; i < count; ++i) {
      MsgValue key;
      if (!in_.next(key)) return false;
      if (key.type != MsgType::kString) return in_.fail("event field name is not a string");
      if (key.text == "type") {
        MsgValue name;
        if (!in_.next(name)) return false;
        if (name.type != MsgType::kString) return in_.fail("event tag \"type\" is not a string");
        tag = tag_of(name.text);
        if (!tag) return unknown_tag(name.text);
        continue;
      }
      Field f = kUnknownField;
      for (const auto& [text, named] : kFieldNames)
        if (text == key.text) f = named;
      if (!field(f)) return false;
    }
    if (!tag) return in_.fail("map-encoded event is missing the \"type\" tag");
    return finish(*tag, out);
  }

  bool field(Field f) {
    MsgValue v;
    if (!in_.next(v)) return false;
    if (v.type == MsgType::kNil) return true;  // Absent; finish() knows what is required.
    switch (f) {
      case kHashes:
        return hashes(v);
      case kParent:
        return hash(v, stored_.parent);
      case kTokens:
        return tokens(v);
      case kBlockSize:
        have_block_size_ = true;
        return integer(v, stored_.block_size, "block_size");
      case kLoraId:
        return integer(v, stored_.lora_id.emplace(), "lora_id");
      case kMedium:
        return text(v, stored_.medium, "medium");
      case kLoraName:
        return text(v, stored_.lora_name.emplace(), "lora_name");
      case kExtraKeys:
        return extra_keys(v);
      case kGroup:
        return group(v);
      case kKind:
        return text(v, stored_.kv_cache_spec_kind.emplace(), "kv_cache_spec_kind");
      case kWindow:
        return integer(v, stored_.sliding_window.emplace(), "kv_cache_spec_sliding_window");
      case kUnknownField:
        return in_.skip_rest(v);
    }
    return false;
  }

  bool finish(Tag tag, KvEvent& out) {
    switch (tag) {
      case Tag::kCleared:
        out = AllBlocksCleared{};
        return true;
      case Tag::kRemoved:
        if (!have_hashes_) return in_.fail("BlockRemoved without block_hashes");
        out = BlockRemoved{.hashes = std::move(stored_.hashes),
                           .medium = std::move(stored_.medium),
                           .group_idx = stored_.group_idx};
        return true;
      case Tag::kStored:
        if (!have_hashes_) return in_.fail("BlockStored without block_hashes");
        if (!have_tokens_) return in_.fail("BlockStored without token_ids");
        if (!have_block_size_) return in_.fail("BlockStored without block_size");
        out = std::move(stored_);
        return true;
    }
    return false;
  }

 public:
  bool hash(const MsgValue& v, std::uint64_t& out) {
    if (v.type == MsgType::kInt && v.wide) {
      out = v.integer;
      return true;
    }
    if (v.type == MsgType::kBytes && !v.text.empty()) {
      out = 0;
      const std::size_t n = v.text.size();
      for (std::size_t i = n > 8 ? n - 8 : 0; i < n; ++i)
        out = out << 8 | static_cast<unsigned char>(v.text[i]);
      return true;
    }
    return in_.fail("unsupported block hash: want uint64, int64 or non-empty bytes");
  }

 private:
  bool hashes(const MsgValue& v) {
    if (v.type != MsgType::kArray) return in_.fail("block_hashes is not a list");
    have_hashes_ = true;
    stored_.hashes.resize(v.count);
    MsgValue item;
    for (std::uint64_t& h : stored_.hashes)
      if (!in_.next(item) || !hash(item, h)) return false;
    return true;
  }

  bool tokens(const MsgValue& v) {
    if (v.type != MsgType::kArray) return in_.fail("token_ids is not a list");
    have_tokens_ = true;
    stored_.tokens.resize(v.count);
    MsgValue item;
    for (std::span<std::uint32_t> left(stored_.tokens);;) {
      left = left.subspan(in_.next_uint32s(left));
      if (left.empty()) return true;
      if (!in_.next(item)) return false;
      if (item.type != MsgType::kInt || item.negative ||
          item.integer > std::numeric_limits<std::uint32_t>::max())
        return in_.fail("token_ids: want unsigned 32-bit integers");
      left.front() = static_cast<std::uint32_t>(item.integer);
      left = left.subspan(1);
    }
  }

  bool integer(const MsgValue& v, std::int64_t& out, const char* name) {
    if (v.type != MsgType::kInt || (!v.negative && v.integer > INT64_MAX))
      return in_.fail(std::string(name) + " is not an integer");
    out = static_cast<std::int64_t>(v.integer);
    return true;
  }

  bool text(const MsgValue& v, std::string& out, const char* name) {
    if (v.type != MsgType::kString) return in_.fail(std::string(name) + " is not a string");
    out = v.text;
    return true;
  }

  bool group(const MsgValue& v) {
    if (v.type != MsgType::kInt || v.negative || v.integer > kMaxGroup)
      return in_.fail("group_idx is not an integer in range");
    stored_.group_idx = static_cast<std::uint32_t>(v.integer);
    return true;
  }

  // Per block nil or a list; of the list's items strings and the first element of pairs count.
  bool extra_keys(const MsgValue& v) {
    if (v.type != MsgType::kArray) return in_.fail("extra_keys is not a list");
    auto& blocks = stored_.extra_keys.emplace();
    for (std::size_t b = 0; b < v.count; ++b) {
      BlockExtra& identifiers = blocks.emplace_back();
      MsgValue list;
      if (!in_.next(list)) return false;
      if (list.type == MsgType::kNil) continue;
      if (list.type != MsgType::kArray)
        return in_.fail("extra_keys[" + std::to_string(b) + "] has invalid type");
      for (std::size_t i = 0; i < list.count; ++i)
        if (!extra_key(identifiers)) return false;
    }
    return true;
  }

  bool extra_key(BlockExtra& identifiers) {
    MsgValue item;
    if (!in_.next(item)) return false;
    if (item.type == MsgType::kString) {
      identifiers.emplace_back(item.text);
      return true;
    }
    if (item.type != MsgType::kArray) return in_.skip_rest(item);
    for (std::size_t i = 0; i < item.count; ++i) {
      MsgValue part;
      if (!in_.next(part)) return false;
      if (i == 0 && part.type == MsgType::kString) identifiers.emplace_back(part.text);
      if (!in_.skip_rest(part)) return false;
    }
    return true;
  }

  MsgReader& in_;
  BlockStored stored_;  // Collects the fields of any tag.
  bool have_hashes_ = false;
  bool have_tokens_ = false;
  bool have_block_size_ = false;
};

std::string finish(MsgReader& in, bool ok) {
  if (ok && !in.at_end()) in.fail("trailing bytes");
  return in.error();
}

constexpr std::size_t kBatchFields = 3;

bool decode_batch(MsgReader& in, KvEventBatch& out) {
  MsgValue batch;
  if (!in.next(batch)) return false;
  // llm-d-kv-cache v0.8.1 pkg/kvevents/engineadapter/vllm_adapter.go decodes a struct of three
  // fields, and its msgpack library refuses an array of any other length.
  if (batch.type != MsgType::kArray || batch.count != kBatchFields)
    return in.fail("a batch is an array of three, [timestamp, events, rank]");
  MsgValue ts;
  if (!in.next(ts)) return false;
  if (ts.type == MsgType::kFloat)
    out.timestamp = ts.real;
  else if (ts.type == MsgType::kInt)
    out.timestamp = ts.negative ? static_cast<double>(static_cast<std::int64_t>(ts.integer))
                                : static_cast<double>(ts.integer);
  else
    return in.fail("timestamp is not a number");
  MsgValue events;
  if (!in.next(events)) return false;
  if (events.type != MsgType::kArray) return in.fail("events is not a list");
  for (std::size_t i = 0; i < events.count; ++i)
    if (!EventDecoder(in).decode(out.events.emplace_back())) return false;
  MsgValue rank;
  if (!in.next(rank)) return false;
  if (rank.type == MsgType::kInt)
    out.data_parallel_rank = static_cast<std::int64_t>(rank.integer);
  else if (rank.type != MsgType::kNil)
    return in.fail("data_parallel_rank is not an integer");
  return true;
}

}  // namespace

std::string decode_kv_batch(std::span<const std::uint8_t> payload, KvEventBatch& out,
                            const KvDecodeLimits& limits) {
  if (payload.size() > limits.max_bytes) return "payload too large";
  out = {};
  MsgReader in(payload, limits.max_depth);
  return finish(in, decode_batch(in, out));
}

std::string decode_kv_event(std::span<const std::uint8_t> payload, KvEvent& out,
                            const KvDecodeLimits& limits) {
  if (payload.size() > limits.max_bytes) return "payload too large";
  MsgReader in(payload, limits.max_depth);
  return finish(in, EventDecoder(in).decode(out));
}

std::string decode_kv_hash(std::span<const std::uint8_t> payload, std::uint64_t& out) {
  MsgReader in(payload, 1);
  MsgValue v;
  return finish(in, in.next(v) && EventDecoder(in).hash(v, out));
}

// ---- Encoding
// -------------------------------------------------------------------------------------

namespace {

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

}  // namespace

std::vector<std::uint8_t> encode_kv_batch(const KvEventBatch& batch, KvEncoding encoding) {
  MsgWriter out;
  out.array(kBatchFields);
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
