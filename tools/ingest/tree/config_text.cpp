// ConfigNode trees as text again: YAML and JSON.
#include "base/scalar_parse.h"
#include "tools/ingest/tree/description.h"
#include "tools/results/described_json.h"

namespace routesim::tools {

namespace {

bool is_plain(const ConfigNode& node) {
  return node.style() == ConfigNode::Style::kPlain || node.style() == ConfigNode::Style::kUntyped;
}

/// Whether text means itself without quotes, wherever it stands.
bool is_safe_text(const std::string& text) {
  constexpr std::string_view kFirst =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./";
  constexpr std::string_view kInside = " ,?()+=%;-";
  if (text.empty() || kFirst.find(text.front()) == std::string_view::npos || text.back() == ' ')
    return false;
  for (const char c : text)
    if (kFirst.find(c) == std::string_view::npos && kInside.find(c) == std::string_view::npos)
      return false;
  return plain_type(text) == PlainType::kText && text != "null";
}

/// A scalar for YAML. Quoted text is written as JSON, which YAML's double quotes read.
/// Plain text stays plain if it reads back as the same: a number does, two folded lines do not.
std::string yaml_scalar(const ConfigNode& node) {
  const bool stays =
      is_plain(node) && (plain_type(node.text()) != PlainType::kText || is_safe_text(node.text()));
  return stays ? node.text() : json_string(node.text());
}

/// A key of a map and its colon. YAML gives up on a key of more than 1,024 characters, as long as
/// escapes may make it, unless a question mark announces it.
std::string yaml_key(const std::string& key, const std::string& margin) {
  const std::string text = is_safe_text(key) ? key : json_string(key);
  return text.size() <= 1000 ? text + ":" : "? " + text + "\n" + margin + ":";
}

/// Writes `node` below `indent`. `inline_start` is true when the cursor stands behind "- ".
void write_yaml(const ConfigNode& node, int indent, bool inline_start, std::string& out) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  const auto write_child = [&](const ConfigNode& child, bool is_element) {
    const bool nests = (child.is_map() && !child.members().empty()) ||
                       (child.is_sequence() && !child.items().empty());
    if (!nests) {
      out += ' ';
      write_yaml(child, 0, true, out);
    } else if (is_element) {
      out += ' ';
      write_yaml(child, indent + 2, true, out);
    } else {
      out += '\n';
      write_yaml(child, indent + 2, false, out);
    }
  };
  bool first = inline_start;
  switch (node.kind()) {
    case ConfigNode::Kind::kNull:
      out += "null\n";
      break;
    case ConfigNode::Kind::kScalar:
      out += yaml_scalar(node) + "\n";
      break;
    case ConfigNode::Kind::kSequence:
      if (node.items().empty()) out += "[]\n";
      for (const ConfigNode::Ptr& item : node.items()) {
        out += (first ? std::string() : margin) + "-";
        first = false;
        write_child(*item, true);
      }
      break;
    case ConfigNode::Kind::kMap:
      if (node.members().empty()) out += "{}\n";
      for (const ConfigNode::Member& member : node.members()) {
        out += (first ? std::string() : margin) + yaml_key(member.key, margin);
        first = false;
        write_child(*member.value, false);
      }
      break;
  }
}

}  // namespace

std::string to_yaml(const ConfigNode& node) {
  std::string out;
  write_yaml(node, 0, false, out);
  return out;
}

std::string to_json(const ConfigNode& node) {
  JsonWriter json;
  write_tree(json, node);
  return json.str() + "\n";
}

}  // namespace routesim::tools
