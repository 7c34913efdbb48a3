#include "workloads/sessions/replay_match.h"

#include <algorithm>
#include <string>

namespace routesim::workloads {
namespace {

constexpr std::size_t kSymbol = 8;

/// The first of `places` that is not before `from`.
std::optional<std::size_t> first_from(const std::vector<std::size_t>& places, std::size_t from) {
  const auto found = std::lower_bound(places.begin(), places.end(), from);
  if (found == places.end()) return std::nullopt;
  return *found;
}

}  // namespace

MessageIndex::MessageIndex(const RecordedCall& call, TextUnit unit) : call_(call), unit_(unit) {
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

bool MessageIndex::holds(std::size_t message, std::string_view text) const {
  const std::string& within = call_.messages[message]->text;
  for (std::size_t at = within.find(text); at != std::string::npos; at = within.find(text, at + 1))
    if (unit_ == TextUnit::kCharacters || at % kSymbol == 0) return true;
  return false;
}

bool MessageIndex::is_or_holds(std::size_t message, std::string_view text) const {
  return call_.messages[message]->role == "assistant" && holds(message, text);
}

std::optional<MessageIndex::Found> MessageIndex::find_text(std::string_view text) const {
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

std::optional<std::size_t> MessageIndex::find_whole(std::string_view text, std::size_t from) const {
  const auto known = whole_.find(text);
  if (known == whole_.end()) return std::nullopt;
  return first_from(known->second, from);
}

std::optional<std::size_t> MessageIndex::find_calls(const std::vector<std::string>& ids,
                                                    std::size_t from) const {
  if (ids.empty()) return std::nullopt;
  const auto known = calls_.find(ids.front());
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

bool MessageIndex::has_calls(const RecordedMessage& answer) const {
  bool any = false;
  for (const RecordedPart& part : answer.parts) {
    if (!part.tool_call || part.id.empty()) continue;
    if (!calls_.contains(part.id)) return false;
    any = true;
  }
  return any;
}

bool MessageIndex::follow_from(std::size_t message, const std::vector<const RecordedPart*>& parts,
                               std::string_view before) const {
  // A tool call is followed by its result, a text by the next part.
  std::size_t at = message;
  for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
    at += !before.empty() || parts[p]->tool_call ? 2 : 1;
    if (at >= call_.messages.size() || !is_or_holds(at, std::string(before) + parts[p + 1]->text))
      return false;
  }
  return true;
}

bool MessageIndex::follow(const std::vector<const RecordedPart*>& parts,
                          std::string_view before) const {
  if (parts.empty()) return false;
  const std::string first = std::string(before) + parts.front()->text;
  for (const std::size_t m : assistants_)
    if (holds(m, first) && follow_from(m, parts, before)) return true;
  return false;
}

bool MessageIndex::has_pieces(const RecordedMessage& answer) const {
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

}  // namespace routesim::workloads
