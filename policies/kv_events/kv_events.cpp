#include "policies/kv_events/kv_events.h"

#include <limits>
#include <utility>

#include "base/check.h"
#include "policies/kv_events/kv_msgpack.h"

namespace routesim::policies {
namespace {

constexpr std::uint32_t kMaxGroup =
    (1u << 24) - 2;  // The largest group that a row of the index can hold.

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
constexpr std::array<std::string_view, 11> kFieldNames = {  // From kHashes on.
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
    "extra_keys",
    "group_idx",
    "kv_cache_spec_kind",
    "kv_cache_spec_sliding_window"};
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
      const auto name = std::find(kFieldNames.begin(), kFieldNames.end(), key.text);
      const auto place = static_cast<int>(name - kFieldNames.begin()) + kHashes;
      if (!field(name == kFieldNames.end() ? kUnknownField : static_cast<Field>(place)))
        return false;
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

// ---- Transport: topics, sequence numbers, sharding ---------------------------------------------

KvTopic parse_kv_topic(std::string_view topic) {
  const std::size_t first = topic.find('@');
  const std::size_t second = first == std::string_view::npos ? first : topic.find('@', first + 1);
  const bool three =
      second != std::string_view::npos && topic.find('@', second + 1) == std::string_view::npos;
  if (!three) return {.pod = topic, .model = {}};
  return {.pod = topic.substr(first + 1, second - first - 1), .model = topic.substr(second + 1)};
}

std::optional<std::uint64_t> parse_kv_sequence(std::span<const std::uint8_t> frame) {
  if (frame.size() != 8) return std::nullopt;
  std::uint64_t value = 0;
  for (const std::uint8_t byte : frame) value = value << 8 | byte;
  return value;
}

std::array<std::uint8_t, 8> encode_kv_sequence(std::uint64_t sequence) {
  std::array<std::uint8_t, 8> frame;
  for (int i = 0; i < 8; ++i) frame[i] = static_cast<std::uint8_t>(sequence >> 8 * (7 - i));
  return frame;
}

SequenceVerdict SequenceTracker::observe(std::uint64_t sequence) {
  const std::optional<std::uint64_t> last = std::exchange(last_, sequence);
  if (!last || sequence == *last + 1) return {};
  // The same number again can only come from a publisher that restarted.
  const bool restarted = sequence <= *last;
  if (!restarted) missed_ += sequence - *last - 1;
  if (!replay_) return {};
  if (restarted) return {.action = SequenceAction::kClearAndReplay};
  return {.action = SequenceAction::kReplay, .replay_from = *last + 1};
}

SequenceVerdict ReplayTracker::observe(std::uint64_t sequence, SimTime now, bool asked) {
  constexpr SequenceVerdict kDropped{.action = SequenceAction::kDrop};
  if (!asked && live_ && sequence < *live_) {
    *this = {};
    return {.action = SequenceAction::kClearAndReplay};
  }
  if (!asked && live_ == sequence) return kDropped;
  live_ = sequence;
  if (last_ ? sequence <= *last_ : asked && sequence > 0) return kDropped;
  const std::uint64_t next = last_ ? *last_ + 1 : 0;
  if (sequence > next) {
    if (asked || (failed_ && now - *failed_ < kCooldown)) return kDropped;
    return {.action = SequenceAction::kReplay, .replay_from = next};
  }
  last_ = sequence;
  return {};
}

std::uint32_t kv_worker(std::string_view source, std::uint32_t concurrency) {
  ROUTESIM_CHECK(concurrency >= 1, "at least one worker");
  return fnv1a32(source) % concurrency;
}

std::string kv_subscriber_endpoint(std::string_view address, int socket_port, int rank_index) {
  return "tcp://" + std::string(address) + ":" + std::to_string(socket_port + rank_index);
}

}  // namespace routesim::policies
