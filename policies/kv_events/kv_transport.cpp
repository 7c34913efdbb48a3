// The parts of kv_events.h around a payload: topics, sequence numbers, sharding.
#include <string>

#include "base/check.h"
#include "policies/kv_events/kv_events.h"

namespace routesim::policies {

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
  for (std::size_t i = 0; i < 8; ++i)
    frame[i] = static_cast<std::uint8_t>(sequence >> (56 - 8 * i));
  return frame;
}

SequenceVerdict SequenceTracker::observe(std::uint64_t sequence) {
  const std::optional<std::uint64_t> last = last_;
  last_ = sequence;
  if (!last || sequence == *last + 1) return {};
  // The same number again can only come from a publisher that restarted.
  if (sequence <= *last)
    return {.action = replay_ ? SequenceAction::kClearAndReplay : SequenceAction::kDeliver};
  missed_ += sequence - *last - 1;
  if (!replay_) return {};
  return {.action = SequenceAction::kReplay, .replay_from = *last + 1};
}

std::uint32_t fnv1a32(std::string_view bytes) {
  std::uint32_t h = 0x811c9dc5;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x01000193;
  return h;
}

std::uint32_t kv_worker(std::string_view source, std::uint32_t concurrency) {
  ROUTESIM_CHECK(concurrency >= 1, "at least one worker");
  return fnv1a32(source) % concurrency;
}

std::string kv_subscriber_endpoint(std::string_view address, int socket_port, int rank_index) {
  return "tcp://" + std::string(address) + ":" + std::to_string(socket_port + rank_index);
}

}  // namespace routesim::policies
