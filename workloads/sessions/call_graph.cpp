// Which recorded call waits for which, and what of its prompt comes from them.
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/rng.h"
#include "workloads/sessions/recording.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

/// The first of `places` that is not before `from`.
std::optional<std::size_t> first_from(const std::vector<std::size_t>& places, std::size_t from) {
  const auto found = std::lower_bound(places.begin(), places.end(), from);
  if (found == places.end()) return std::nullopt;
  return *found;
}

/// Finds answers of earlier calls in the messages of one call, indexed for many answers.
class MessageIndex {
 public:
  MessageIndex(const RecordedCall& call, TextUnit unit) : call_(call), unit_(unit) {
    for (std::size_t m = 0; m < call.messages.size(); ++m) {
      const RecordedMessage& message = *call.messages[m];
      for (const std::string& id : message.call_ids) calls_[id].push_back(m);
      if (message.role != "assistant") continue;
      assistants_.push_back(m);
      longest_ = std::max(longest_, message.text.size());
      whole_[message.text].push_back(m);
      if (unit_ != TextUnit::kSymbols) continue;
      const std::string_view text = message.text;
      for (std::size_t at = 0; at + kSymbol <= text.size(); at += kSymbol)
        symbols_.insert(text.substr(at, kSymbol));
    }
  }

  struct Found {
    std::size_t message = 0;
    bool whole = false;  ///< The message is the text and no more.
  };
  /// The first assistant message that is the text or holds it.
  std::optional<Found> find_text(std::string_view text) const {
    if (text.size() > longest_ || assistants_.empty()) return std::nullopt;
    if (unit_ == TextUnit::kSymbols && !text.empty() && !symbols_.contains(text.substr(0, kSymbol)))
      return std::nullopt;
    const auto known = whole_.find(text);
    const std::size_t whole = known == whole_.end() ? call_.messages.size() : known->second.front();
    for (const std::size_t m : assistants_) {
      if (m == whole) return Found{.message = m, .whole = true};
      if (holds(m, text)) return Found{.message = m, .whole = false};
    }
    return std::nullopt;
  }

  /// The first assistant message from `from` on that is the text.
  std::optional<std::size_t> find_whole(std::string_view text, std::size_t from) const {
    const auto known = whole_.find(text);
    return known == whole_.end() ? std::nullopt : first_from(known->second, from);
  }

  /// The first message from `from` on that makes all these tool calls.
  std::optional<std::size_t> find_calls(const std::vector<std::string>& ids,
                                        std::size_t from) const {
    const auto known = ids.empty() ? calls_.end() : calls_.find(ids.front());
    if (known == calls_.end()) return std::nullopt;
    for (const std::size_t m : known->second) {
      if (m < from) continue;
      const std::vector<std::string>& has = call_.messages[m]->call_ids;
      if (std::all_of(ids.begin(), ids.end(), [&has](const std::string& id) {
            return std::find(has.begin(), has.end(), id) != has.end();
          }))
        return m;
    }
    return std::nullopt;
  }

  /// Whether every tool call of the answer stands in some message. False without ids.
  bool has_calls(const RecordedMessage& answer) const {
    bool any = false;
    for (const RecordedPart& part : answer.parts) {
      if (!part.tool_call || part.id.empty()) continue;
      if (!calls_.contains(part.id)) return false;
      any = true;
    }
    return any;
  }

  /// Whether the pieces of the answer stand in messages one after another, with or without its
  /// text, or its text before each of its tool calls.
  bool has_pieces(const RecordedMessage& answer) const {
    if (answer.parts.size() < 2) return false;
    std::vector<const RecordedPart*> all, tools;
    for (const RecordedPart& part : answer.parts) {
      all.push_back(&part);
      if (part.tool_call) tools.push_back(&part);
    }
    if (follow(all, {})) return true;
    if (answer.parts.front().tool_call) return false;
    if (tools.size() + 1 == all.size() && follow(tools, answer.parts.front().text + "\n"))
      return true;
    return follow(tools, {});
  }

 private:
  static constexpr std::size_t kSymbol = 8;  // Bytes.

  bool holds(std::size_t message, std::string_view text) const {
    const std::string& within = call_.messages[message]->text;
    for (std::size_t at = within.find(text); at != std::string::npos;
         at = within.find(text, at + 1))
      if (unit_ == TextUnit::kCharacters || at % kSymbol == 0) return true;
    return false;
  }

  bool follow(const std::vector<const RecordedPart*>& parts, const std::string& before) const {
    if (parts.empty()) return false;
    return std::any_of(assistants_.begin(), assistants_.end(), [&](std::size_t m) {
      return holds(m, before + parts.front()->text) && follow_from(m, parts, before);
    });
  }
  bool follow_from(std::size_t message, const std::vector<const RecordedPart*>& parts,
                   const std::string& before) const {
    // A tool call is followed by its result, a text by the next part.
    std::size_t at = message;
    for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
      at += !before.empty() || parts[p]->tool_call ? 2 : 1;
      if (at >= call_.messages.size() || call_.messages[at]->role != "assistant" ||
          !holds(at, before + parts[p + 1]->text))
        return false;
    }
    return true;
  }

  const RecordedCall& call_;
  TextUnit unit_;
  std::vector<std::size_t> assistants_;
  std::size_t longest_ = 0;  // Longest of their texts, in bytes.
  std::unordered_map<std::string_view, std::vector<std::size_t>> whole_;  // Looked up only.
  std::unordered_map<std::string_view, std::vector<std::size_t>> calls_;  // Looked up only.
  std::unordered_set<std::string_view> symbols_;  // In assistant texts that consist of symbols.
};

/// A set of calls.
using Calls = std::vector<bool>;

void unite(Calls& set, const Calls& with) {
  for (std::size_t i = 0; i < with.size(); ++i)
    if (with[i]) set[i] = true;
}

class GraphBuilder {
 public:
  GraphBuilder(const std::vector<RecordedCall>& calls, TextUnit unit)
      : calls_(calls), unit_(unit), nodes_(calls.size()) {
    for (const RecordedCall& call : calls) chains_.push_back(chain_of(call));
  }

  std::vector<CallNode> build() && {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const MessageIndex index(calls_[i], unit_);
      whole_matches_.assign(i, std::nullopt);
      causes_.emplace_back(i, false);
      ancestors_.emplace_back(i, false);
      find_causes(i, index);
      find_previous(i);
      for (const std::uint32_t p : nodes_[i].predecessors) {
        ancestors_[i][p] = true;
        unite(ancestors_[i], ancestors_[p]);
      }
      set_wait(i);
      decompose(i, index);
    }
    return std::move(nodes_);
  }

 private:
  /// One hash per number of leading messages: equal hashes, equal messages.
  std::vector<std::uint64_t> chain_of(const RecordedCall& call) {
    std::vector<std::uint64_t> chain;
    std::uint64_t hash = 0;
    for (const RecordedMessagePtr& m : call.messages) {
      // Calls share most of their messages: each is hashed once.
      const auto [known, added] = hashes_.try_emplace(m.get(), 0);
      if (added) known->second = mix64(hash_bytes(m->role), hash_bytes(m->text));
      hash = mix64(hash, known->second);
      chain.push_back(hash);
    }
    return chain;
  }

  void find_causes(std::size_t i, const MessageIndex& index) {
    for (std::size_t j = i; j-- > 0;) {
      const RecordedMessagePtr& answer = calls_[j].answer;
      if (causes_[i][j] || answer == nullptr || calls_[i].messages.empty()) continue;
      const auto found = index.find_text(answer->text);
      if (found && found->whole) whole_matches_[j] = found->message;
      if (!found && !index.has_calls(*answer) && !index.has_pieces(*answer)) continue;
      nodes_[i].predecessors.push_back(static_cast<std::uint32_t>(j));
      causes_[i][j] = true;
      unite(causes_[i], causes_[j]);
    }
  }

  /// The latest call to start that had ended when this one started.
  void find_previous(std::size_t i) {
    for (std::size_t j = i; j-- > 0;) {
      if (calls_[i].start_ms < calls_[j].end_ms) continue;
      std::vector<std::uint32_t>& known = nodes_[i].predecessors;
      const auto previous = static_cast<std::uint32_t>(j);
      if (std::find(known.begin(), known.end(), previous) == known.end()) known.push_back(previous);
      return;
    }
  }

  void set_wait(std::size_t i) {
    const std::vector<std::uint32_t>& predecessors = nodes_[i].predecessors;
    if (predecessors.empty()) return;
    std::int64_t last = calls_[predecessors.front()].end_ms;
    for (const std::uint32_t p : predecessors) last = std::max(last, calls_[p].end_ms);
    nodes_[i].wait_ms = std::max<std::int64_t>(0, calls_[i].start_ms - last);
  }

  std::size_t common_messages(std::size_t i, std::size_t j) const {
    std::size_t low = 0, high = std::min(chains_[i].size(), chains_[j].size());
    while (low < high) {
      const std::size_t middle = (low + high + 1) / 2;
      if (chains_[i][middle - 1] == chains_[j][middle - 1])
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  /// An ancestor, and where its answer stands next.
  struct Answer {
    std::size_t call = 0;
    std::optional<std::size_t> next;
  };

  std::optional<std::size_t> next_place(std::size_t j, const MessageIndex& index,
                                        std::size_t cursor) const {
    if (whole_matches_[j]) return *whole_matches_[j] >= cursor ? whole_matches_[j] : std::nullopt;
    const RecordedMessage& answer = *calls_[j].answer;
    const auto whole = index.find_whole(answer.text, cursor);
    std::vector<std::string> ids;
    for (const RecordedPart& part : answer.parts)
      if (part.tool_call && !part.id.empty()) ids.push_back(part.id);
    const auto by_ids = index.find_calls(ids, cursor);
    if (!whole || !by_ids) return whole ? whole : by_ids;
    return std::min(*whole, *by_ids);
  }

  void add_recorded(std::size_t i, std::size_t messages) {
    if (messages > 0)
      nodes_[i].parts.push_back({.kind = PromptPart::Kind::kRecorded,
                                 .source = 0,
                                 .messages = static_cast<std::uint32_t>(messages)});
  }

  /// The longest beginning that an ancestor sent, then answers of ancestors and what is between.
  void decompose(std::size_t i, const MessageIndex& index) {
    std::vector<Answer> answers;
    std::size_t cursor = 0, source = 0;
    for (std::size_t j = 0; j < i; ++j) {
      if (!ancestors_[i][j]) continue;
      if (calls_[j].answer != nullptr) answers.push_back({.call = j, .next = std::nullopt});
      const std::size_t common = common_messages(i, j);
      if (common > cursor) {
        cursor = common;
        source = j;
      }
    }
    if (cursor > 0)
      nodes_[i].parts.push_back({.kind = PromptPart::Kind::kShared,
                                 .source = static_cast<std::uint32_t>(source),
                                 .messages = static_cast<std::uint32_t>(cursor)});
    for (Answer& a : answers) a.next = next_place(a.call, index, cursor);
    const std::size_t end = calls_[i].messages.size();
    while (cursor < end) {
      const Answer* first = nullptr;
      for (Answer& a : answers) {
        if (a.next && *a.next < cursor) a.next = next_place(a.call, index, cursor);
        if (a.next && (first == nullptr || *a.next < *first->next)) first = &a;
      }
      add_recorded(i, (first == nullptr ? end : *first->next) - cursor);
      if (first == nullptr) break;
      nodes_[i].parts.push_back({.kind = PromptPart::Kind::kAnswer,
                                 .source = static_cast<std::uint32_t>(first->call),
                                 .messages = 1});
      cursor = *first->next + 1;
    }
  }

  const std::vector<RecordedCall>& calls_;
  TextUnit unit_;
  std::vector<CallNode> nodes_;
  std::unordered_map<const RecordedMessage*, std::uint64_t> hashes_;  // Looked up, never iterated.
  std::vector<std::vector<std::uint64_t>> chains_;
  std::vector<Calls> causes_;     // Per call: all it depends on by answers.
  std::vector<Calls> ancestors_;  // Per call: all it waits for.
  std::vector<std::optional<std::size_t>>
      whole_matches_;  // Places of earlier answers in this call.
};

}  // namespace

std::vector<CallNode> build_call_graph(const std::vector<RecordedCall>& calls, TextUnit unit) {
  return GraphBuilder(calls, unit).build();
}

}  // namespace routesim::workloads
