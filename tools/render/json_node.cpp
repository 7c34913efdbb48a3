#include "tools/render/json_node.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

using Ordered = nlohmann::ordered_json;

const Ordered& ordered(const void* value) { return *static_cast<const Ordered*>(value); }

}  // namespace

Node Node::operator[](const std::string& key) const {
  static const Ordered kNull;
  const Ordered& json = ordered(value_);
  const bool found = json.is_object() && json.contains(key);
  std::string escaped;
  for (const char c : key) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return {found ? &json[key] : &kNull, path_ + "/" + escaped};
}

std::vector<Node> Node::items() const {
  std::vector<Node> out;
  const Ordered& json = ordered(value_);
  if (!json.is_array()) return out;
  for (std::size_t i = 0; i < json.size(); ++i)
    out.emplace_back(&json[i], path_ + "/" + std::to_string(i));
  return out;
}

std::vector<std::string> Node::keys() const {
  std::vector<std::string> out;
  const Ordered& json = ordered(value_);
  if (json.is_object())
    for (const auto& [key, member] : json.items()) out.push_back(key);
  return out;
}

std::string Node::text() const {
  const Ordered& json = ordered(value_);
  if (json.is_string()) return json.get<std::string>();
  return json.is_null() || json.is_discarded() ? std::string() : json.dump();
}

bool Node::is_true() const {
  const Ordered& json = ordered(value_);
  return json.is_boolean() && json.get<bool>();
}

std::optional<Datum> Node::datum() const {
  const Ordered& json = ordered(value_);
  if (!json.is_number()) return std::nullopt;
  return Datum{.value = json.get<double>(), .path = path_, .low = {}, .high = {}, .raw = {}};
}

double Node::number() const {
  const Ordered& json = ordered(value_);
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string percent_text(const Node& percent, const Node& interval) {
  const auto number = [](const Node& node) {
    const std::optional<Datum> datum = node.datum();
    return datum ? std::optional(datum->value) : std::nullopt;
  };
  const std::optional<double> value = number(percent);
  return value ? percent_text(*value, number(interval["low"]), number(interval["high"])) : "";
}

JsonDocument::JsonDocument(const std::string& text)
    : value_(std::make_shared<const Ordered>(Ordered::parse(text, nullptr, false))) {}

}  // namespace routesim::tools
