// Coding-agent sessions as kv-cache-tester records them: requests with the hashes of the blocks of
// their prompts, and sub-agents with requests of their own. Rebuilt as inference-perf does.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tools/ingest/traces/recordings.h"
#include "workloads/prompts.h"
#include "workloads/traces/text_scan.h"

namespace routesim::tools {
namespace {

using workloads::content_id;
using workloads::ContentKind;
using workloads::hash_bytes;
using workloads::JsonScanner;
using workloads::RecordedCall;
using workloads::RecordedMessage;
using workloads::RecordedMessagePtr;
using workloads::Recording;
using workloads::Segment;

constexpr double kMostSeconds = 1e9;

struct WekaRequest {
  double t = 0;  ///< Start, in seconds; a sub-agent's may count from its own start.
  std::int64_t input = 0, output = 0;  ///< Tokens.
  double api_time = 0;                 ///< Seconds the answer took.
  std::vector<std::uint64_t> hash_ids{};
};

struct WekaSubagent {
  double t = 0;  ///< Start, in seconds.
  std::string agent_id{};
  std::int64_t tool_tokens = 0, system_tokens = 0;
  std::vector<WekaRequest> requests{};
};

/// One session.
struct WekaTrace {
  std::string id{};
  std::int64_t block_size = 0;  ///< Tokens of a hash id; 0: the replay's default.
  std::int64_t tool_tokens = 0, system_tokens = 0;
  std::vector<WekaRequest> requests{};
  std::vector<WekaSubagent> subagents{};
};

/// Reads the members of one trace. Every function returns whether the scanner is still good.
class TraceScan {
 public:
  TraceScan(JsonScanner& json, WekaTrace& trace) : json_(json), trace_(trace) {}

  bool read() {
    bool requests = false, block_size = false;
    const bool good = json_.members([&](const std::string& key) {
      if (key == "id") return json_.read_string(trace_.id);
      if (key == "block_size")
        return block_size = read_count(trace_.block_size, 1'000'000, "block_size");
      if (key == "tool_tokens") return read_count(trace_.tool_tokens, kMostRecordedTokens, key);
      if (key == "system_tokens") return read_count(trace_.system_tokens, kMostRecordedTokens, key);
      if (key == "requests") return requests = read_requests();
      return json_.skip();
    });
    if (!good) return false;
    if (trace_.id.empty()) return json_.fail("a trace without `id`");
    if (!block_size) return json_.fail("a trace without `block_size`");
    if (!requests) return json_.fail("a trace without `requests`");
    return true;
  }

 private:
  /// One entry of `requests`; its type tells which members count.
  struct Entry {
    std::string type;
    WekaRequest request;
    WekaSubagent agent;
    bool t = false, in = false, out = false, id = false;
  };

  bool read_count(std::int64_t& out, std::int64_t most, const std::string& what) {
    if (!json_.read_integer(out)) return false;
    if (out >= 0 && out <= most) return true;
    return json_.fail(what + " must be from 0 to " + std::to_string(most) + " (got " +
                      std::to_string(out) + ")");
  }

  bool read_seconds(double& out, double least, const std::string& what) {
    if (json_.peek() == JsonScanner::Kind::kNull) return json_.skip();
    if (!json_.read_real(out)) return false;
    if (out >= least && out <= kMostSeconds) return true;
    return json_.fail(what + " must be at most 10^9 seconds" +
                      (least < 0 ? "" : " and not negative"));
  }

  bool read_member(const std::string& key, Entry& e, bool nested) {
    if (key == "type") return json_.read_string(e.type);
    if (key == "t") return e.t = read_seconds(e.request.t, -kMostSeconds, key);
    if (key == "in") return e.in = read_count(e.request.input, kMostRecordedTokens, key);
    if (key == "out") return e.out = read_count(e.request.output, kMostRecordedTokens, key);
    if (key == "api_time") return read_seconds(e.request.api_time, 0, key);
    if (key == "hash_ids") return json_.read_integers(e.request.hash_ids);
    if (nested) return json_.skip();
    if (key == "agent_id") return e.id = json_.read_string(e.agent.agent_id);
    if (key == "tool_tokens") return read_count(e.agent.tool_tokens, kMostRecordedTokens, key);
    if (key == "system_tokens") return read_count(e.agent.system_tokens, kMostRecordedTokens, key);
    if (key != "requests") return json_.skip();
    return json_.elements([&] {
      Entry inner;
      if (!read_entry(inner, true)) return false;
      e.agent.requests.push_back(std::move(inner.request));
      return true;
    });
  }

  bool read_entry(Entry& e, bool nested) {
    if (!json_.members([&](const std::string& key) { return read_member(key, e, nested); }))
      return false;
    const bool request = e.type == "n" || e.type == "s";
    if (!request && (nested || e.type != "subagent"))
      return json_.fail(nested ? "a request of a sub-agent whose type is not n or s"
                               : "a request whose type is not n, s or subagent");
    if (!e.t) return json_.fail("a request without `t`");
    if (request && (!e.in || !e.out)) return json_.fail("a request without `in` or `out`");
    if (!request && !e.id) return json_.fail("a sub-agent without `agent_id`");
    return true;
  }

  bool read_requests() {
    return json_.elements([this] {
      Entry e;
      if (!read_entry(e, false)) return false;
      if (e.type == "subagent") {
        e.agent.t = e.request.t;
        trace_.subagents.push_back(std::move(e.agent));
      } else {
        trace_.requests.push_back(std::move(e.request));
      }
      return true;
    });
  }

  JsonScanner& json_;
  WekaTrace& trace_;
};

/// Why the session's graph cannot be built; empty when it can.
std::string too_large(const WekaTrace& trace) {
  std::size_t calls = trace.requests.size(), messages = calls * calls * 2;
  for (const WekaSubagent& agent : trace.subagents) {
    calls += agent.requests.size();
    messages += agent.requests.size() * agent.requests.size() * 2;
  }
  if (calls <= workloads::kMostCalls && messages <= workloads::kMostMessages) return {};
  return "has " + std::to_string(calls) + " requests, too many for one session";
}

/// Eight bytes for each block or rest of one: equal bytes, equal tokens.
std::string symbols(const std::vector<Segment>& tokens) {
  std::string text;
  for (const Segment& s : tokens) {
    const std::uint64_t symbol = mix64(mix64(s.content, static_cast<std::uint64_t>(s.offset)),
                                       static_cast<std::uint64_t>(s.length));
    for (int byte = 0; byte < 8; ++byte)
      text.push_back(static_cast<char>((symbol >> (8 * byte)) & 0xffU));
  }
  return text;
}

RecordedMessagePtr block_message(const char* role, const std::vector<Segment>& tokens) {
  auto message = std::make_shared<RecordedMessage>();
  message->role = role;
  message->text = symbols(tokens);
  message->tokens = std::make_shared<const std::vector<Segment>>(tokens);
  return message;
}

std::int64_t blocks_for(std::int64_t tokens, std::int64_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

/// The messages of one conversation, request by request: what two prompts in a row have in common
/// is kept, the first new blocks are the previous answer, the rest is the user's. As
/// inference-perf's ConversationReconstructor, to the token, where the prefix ends within a message
/// too.
class WekaMessages {
 public:
  /// Texts that no block covers belong to `conversation` of `trace`.
  WekaMessages(std::uint64_t trace, std::uint64_t conversation, std::int64_t block_size)
      : trace_(trace), conversation_(conversation), block_size_(block_size) {}

  /// Goes to the next request. Its tool and system prompt count for the first one only.
  void advance(const WekaRequest& request, std::int64_t prefix_tokens) {
    if (previous_ == nullptr)
      begin(request, prefix_tokens);
    else
      go_on(*previous_, request);
    previous_ = &request;
    ++turn_;
  }

  /// The prompt's messages now.
  const std::vector<RecordedMessagePtr>& messages() const { return messages_; }
  /// The last message that is an answer; an empty text when there is none.
  RecordedMessagePtr last_answer() const {
    for (std::size_t i = messages_.size(); i-- > 0;)
      if (messages_[i]->role == "assistant") return messages_[i];
    return block_message("assistant", {});
  }
  /// An answer of that many tokens that stands in no prompt.
  RecordedMessagePtr final_answer(std::int64_t tokens) const {
    if (tokens <= 0) return block_message("assistant", {});
    return block_message(
        "assistant",
        {{.content = content_id(0, ContentKind::kAnswer, conversation_, turn_), .length = tokens}});
  }

 private:
  struct Stretch {
    const char* role = "user";
    std::int64_t blocks = 0;
    std::vector<Segment> tokens;
  };

  void begin(const WekaRequest& request, std::int64_t prefix_tokens) {
    const std::int64_t hashes = std::ssize(request.hash_ids);
    const std::int64_t whole = request.input / block_size_;
    const std::int64_t covered = std::min(whole, hashes);
    const std::int64_t prefix = std::min(blocks_for(prefix_tokens, block_size_), hashes);
    if (prefix > 0) append("system", prefix, blocks_of(request, 0, prefix));
    std::vector<Segment> tokens = blocks_of(request, prefix, covered);
    add_tail(tokens, (whole - covered) * block_size_ + request.input % block_size_);
    // Fewer blocks than the prefix make the count negative, with the tool as here.
    append("user", covered - prefix, std::move(tokens));
  }

  void go_on(const WekaRequest& previous, const WekaRequest& request) {
    const std::vector<std::uint64_t>& is = request.hash_ids;
    const auto differ =
        std::mismatch(previous.hash_ids.begin(), previous.hash_ids.end(), is.begin(), is.end());
    const std::int64_t common = differ.second - is.begin();
    const std::int64_t hashes = std::ssize(is);
    truncate(common, previous.input % block_size_);
    const std::int64_t answer = std::min(blocks_for(previous.output, block_size_), hashes - common);
    if (answer > 0) append("assistant", answer, blocks_of(request, common, common + answer));
    std::vector<Segment> rest = blocks_of(request, common + answer, hashes);
    const std::int64_t missing = std::max<std::int64_t>(request.input / block_size_ - hashes, 0);
    add_tail(rest, missing * block_size_ + request.input % block_size_);
    if (!rest.empty()) append("user", hashes - common - answer, std::move(rest));
  }

  /// Keeps the first `blocks` blocks, and takes the previous prompt's tail off the stretch that
  /// ends with them.
  void truncate(std::int64_t blocks, std::int64_t previous_tail) {
    if (blocks <= 0) return keep(0);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      const std::int64_t end = before + stretches_[i].blocks;
      if (end < blocks) {
        before = end;
      } else if (end == blocks) {
        keep(i + 1);
        return cut(i, std::max<std::int64_t>(
                          workloads::tokens_in(stretches_[i].tokens) - previous_tail, 0));
      } else if (before == blocks) {
        return keep(i);
      } else {
        keep(i + 1);
        stretches_[i].blocks = blocks - before;
        return cut(i, (blocks - before) * block_size_);
      }
    }
  }

  void keep(std::size_t stretches) {
    if (stretches >= stretches_.size()) return;
    stretches_.resize(stretches);
    messages_.resize(stretches);
  }

  void cut(std::size_t stretch, std::int64_t tokens) {
    Stretch& s = stretches_[stretch];
    if (tokens >= workloads::tokens_in(s.tokens)) return;
    workloads::shorten(s.tokens, tokens);
    messages_[stretch] = block_message(s.role, s.tokens);
  }

  void append(const char* role, std::int64_t blocks, std::vector<Segment> tokens) {
    messages_.push_back(block_message(role, tokens));
    stretches_.push_back({role, blocks, std::move(tokens)});
  }

  std::vector<Segment> blocks_of(const WekaRequest& request, std::int64_t from,
                                 std::int64_t to) const {
    std::vector<Segment> tokens;
    for (std::int64_t i = from; i < to; ++i) {
      const std::uint64_t hash = request.hash_ids[static_cast<std::size_t>(i)];
      tokens.push_back({.content = content_id(0, ContentKind::kTraceBlock, trace_, hash),
                        .length = block_size_});
    }
    return tokens;
  }

  /// Tokens behind the last whole block with a hash: of this request alone.
  void add_tail(std::vector<Segment>& tokens, std::int64_t length) const {
    if (length > 0)
      tokens.push_back(
          {.content = content_id(0, ContentKind::kUnique, conversation_, turn_), .length = length});
  }

  std::uint64_t trace_, conversation_;
  std::int64_t block_size_;
  std::uint64_t turn_ = 0;  // Requests so far.
  const WekaRequest* previous_ = nullptr;
  std::vector<Stretch> stretches_;
  std::vector<RecordedMessagePtr> messages_;  // One per stretch.
};

/// Requests that follow one another: the session's own, or a sub-agent's.
struct Conversation {
  std::string call_prefix;  ///< Start of the names that order calls which start together.
  std::string id;
  std::int64_t prefix_tokens = 0;
  std::vector<const WekaRequest*> requests;
  std::vector<double> starts;  ///< One per request, in seconds of the session.
};

/// Compresses the gaps between starts that are longer than `cap` seconds.
class IdleGaps {
 public:
  IdleGaps(std::vector<double> starts, double cap) {
    if (cap <= 0) return;
    std::sort(starts.begin(), starts.end());
    double shift = 0;
    for (std::size_t i = 1; i < starts.size(); ++i) {
      const double excess = starts[i] - starts[i - 1] - cap;
      if (excess <= 0) continue;
      shift += excess;
      ends_.emplace_back(starts[i], shift);
    }
  }
  /// Maps the start of a call; no other instant may be given.
  double map(double start) const {
    const auto after = std::upper_bound(
        ends_.begin(), ends_.end(), start,
        [](double t, const std::pair<double, double>& end) { return t < end.first; });
    return after == ends_.begin() ? start : start - std::prev(after)->second;
  }

 private:
  std::vector<std::pair<double, double>> ends_;  // End of a gap, and what is cut until then.
};

/// A sub-agent may have several requests under way: as many conversations.
void add_subagent(const WekaTrace& trace, const WekaSubagent& agent,
                  std::vector<Conversation>& out) {
  std::vector<const WekaRequest*> sorted;
  for (const WekaRequest& r : agent.requests) sorted.push_back(&r);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const WekaRequest* a, const WekaRequest* b) { return a->t < b->t; });
  std::vector<Conversation> streams;
  std::vector<double> ends;
  for (const WekaRequest* r : sorted) {
    std::size_t s = 0;
    while (s < ends.size() && ends[s] > r->t) ++s;
    if (s == ends.size()) {
      streams.push_back(
          {.call_prefix = "sa_" + agent.agent_id + "_s" + std::to_string(s) + "_turn_",
           .id = trace.id + "::sa:" + agent.agent_id,
           .prefix_tokens = agent.tool_tokens + agent.system_tokens,
           .requests = {},
           .starts = {}});
      ends.push_back(0);
    }
    ends[s] = r->t + r->api_time;
    streams[s].requests.push_back(r);
    streams[s].starts.push_back(r->t + 1e-6 < agent.t ? agent.t + r->t : r->t);
  }
  for (std::size_t s = 0; s < streams.size(); ++s) {
    if (streams.size() > 1) streams[s].id += ":s" + std::to_string(s);
    out.push_back(std::move(streams[s]));
  }
}

std::vector<Conversation> conversations_of(const WekaTrace& trace) {
  std::vector<Conversation> out;
  Conversation parent = {.call_prefix = "parent_turn_",
                         .id = trace.id,
                         .prefix_tokens = trace.tool_tokens + trace.system_tokens,
                         .requests = {},
                         .starts = {}};
  for (const WekaRequest& r : trace.requests) {
    parent.requests.push_back(&r);
    parent.starts.push_back(r.t);
  }
  out.push_back(std::move(parent));
  for (const WekaSubagent& agent : trace.subagents) add_subagent(trace, agent, out);
  return out;
}

/// A call with the name that orders it.
struct NamedCall {
  std::string name;
  RecordedCall call;
};

std::int64_t to_ms(double seconds) { return static_cast<std::int64_t>(seconds * 1000.0); }

void add_calls(const WekaTrace& trace, const Conversation& c, std::int64_t block_size,
               const IdleGaps& gaps, std::vector<NamedCall>& out) {
  WekaMessages messages(hash_bytes(trace.id), mix64(hash_bytes(c.id), hash_bytes(c.call_prefix)),
                        block_size);
  for (std::size_t k = 0; k < c.requests.size(); ++k) {
    const WekaRequest& request = *c.requests[k];
    messages.advance(request, c.prefix_tokens);
    // An answer is seen in the next prompt only.
    if (k > 0) out.back().call.answer = messages.last_answer();
    NamedCall named = {c.call_prefix + std::to_string(k), {}};
    named.call.start_ms = to_ms(gaps.map(c.starts[k]));
    named.call.end_ms = named.call.start_ms + to_ms(request.api_time);
    named.call.messages = messages.messages();
    named.call.output_tokens = request.output;
    out.push_back(std::move(named));
  }
  if (!c.requests.empty())
    out.back().call.answer = messages.final_answer(c.requests.back()->output);
}

/// The calls of a trace: messages cut out of the blocks of consecutive requests, sub-agents that
/// overlap themselves taken apart, gaps between starts capped. A hash id is the same block in all
/// requests of the trace, and in no other trace. No calls without requests.
Recording recording_of(const WekaTrace& trace, const WekaTraceOptions& options) {
  const std::int64_t block_size =
      trace.block_size > 0 ? trace.block_size : options.default_block_size;
  const std::vector<Conversation> conversations = conversations_of(trace);
  std::vector<double> starts;
  for (const Conversation& c : conversations)
    starts.insert(starts.end(), c.starts.begin(), c.starts.end());
  const IdleGaps gaps(std::move(starts), options.idle_gap_cap_s);
  std::vector<NamedCall> named;
  for (const Conversation& c : conversations) add_calls(trace, c, block_size, gaps, named);
  std::stable_sort(named.begin(), named.end(), [](const NamedCall& a, const NamedCall& b) {
    return a.call.start_ms != b.call.start_ms ? a.call.start_ms < b.call.start_ms : a.name < b.name;
  });
  Recording recording = {.name = trace.id, .unit = workloads::TextUnit::kSymbols, .calls = {}};
  for (NamedCall& n : named) recording.calls.push_back(std::move(n.call));
  return recording;
}

class WekaReader final : public RecordReader {
 public:
  explicit WekaReader(const WekaTraceOptions& options)
      : RecordReader(options.skip_invalid, options.most_records), options_(options) {}

 private:
  Result read_record(std::string_view text, const SourceLocation& where, Recording& recording,
                     Diagnostics& out) override {
    JsonScanner json(text, where.line);
    WekaTrace trace;
    if (TraceScan(json, trace).read() && !json.at_end()) json.fail("text behind the trace");
    if (!json.ok()) {
      complain({where.file, static_cast<int>(json.line()), json.column()}, json.error(), {}, out);
      return Result::kBroken;
    }
    if (!ids_.insert(trace.id).second) {
      out.error(where, {}, "a second trace with the id " + trace.id,
                "each trace is one session, and is read once");
      return Result::kLeftOut;
    }
    if (const std::string what = too_large(trace); !what.empty()) {
      complain(where, what, {}, out);
      return Result::kLeftOut;
    }
    recording = recording_of(trace, options_);
    return Result::kTaken;
  }

  WekaTraceOptions options_;
  std::set<std::string> ids_;
};

}  // namespace

std::unique_ptr<RecordReader> make_weka_reader(const WekaTraceOptions& options) {
  return std::make_unique<WekaReader>(options);
}

}  // namespace routesim::tools
