#include "policies/parameter_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/key_note.h"
#include "policies/document_keys.h"
#include "policies/go_values.h"

namespace routesim::policies {
namespace {

std::string number_text(double v) { return ParameterValue(v).to_text(); }

}  // namespace

ParameterReader::ParameterReader(const ParameterValue& node, std::string path, UnknownKeys unknown,
                                 Diagnostics& diagnostics, Fate fate, std::string_view why)
    : node_(node),
      path_(std::move(path)),
      unknown_(unknown),
      diagnostics_(diagnostics),
      fate_(fate),
      why_(why) {
  if (!node_.is_map() && !node_.is_null())
    diagnostics_.error(node_.where, path_, "must be a map (got " + node_.to_text() + ")");
}

void ParameterReader::finish() {
  if (!node_.is_map()) return;
  for (const auto& [key, value] : node_.map()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string close = nearest(key, known_);
    const std::string hint = close.empty() ? std::string() : "did you mean '" + close + "'?";
    const std::string path = path_.empty() ? key : path_ + "." + key;
    if (unknown_ == UnknownKeys::kError)
      diagnostics_.error(value.where, path, "unknown field", hint);
    else
      diagnostics_.warning(value.where, path, "unknown field, ignored by this release", hint);
    diagnostics_.key(key_use(value.where, kDocumentFormat, path, Fate::kNoEffect,
                             "this release does not know it"));
  }
}

std::string ParameterReader::path_of(const Field& f) const {
  if (f.name.empty()) return path_;
  return path_.empty() ? std::string(f.name) : path_ + "." + std::string(f.name);
}

const ParameterValue* ParameterReader::find(const Field& f) {
  if (element_ != nullptr) return std::exchange(element_, nullptr);
  known_.emplace_back(f.name);
  const ParameterValue* v = node_.find(f.name);
  if (v == nullptr || v->is_null()) {
    if (f.required) diagnostics_.error(node_.where, path_of(f), "is required but missing");
    if (v != nullptr) record(f, *v);
    return nullptr;
  }
  record(f, *v);
  return v;
}

ParameterReader ParameterReader::below(const Field& f, const ParameterValue& node,
                                       std::string path) const {
  const bool is_own = f.fate != Fate::kUsed;
  return {node,         std::move(path),         unknown_,
          diagnostics_, is_own ? f.fate : fate_, is_own ? f.why : why_};
}

void ParameterReader::record(const Field& f, const ParameterValue& value) {
  const bool is_own = f.fate != Fate::kUsed;
  if (!is_leaf(value)) return;
  diagnostics_.key(key_use(value.where, kDocumentFormat, path_of(f), is_own ? f.fate : fate_,
                           is_own ? f.why : why_));
}

void ParameterReader::mismatch(const Field& f, const ParameterValue& v, std::string_view expected) {
  diagnostics_.error(v.where, path_of(f),
                     "must be " + std::string(expected) + " (got " + v.to_text() + ")");
}

void ParameterReader::boolean(const Field& f, bool& v) {
  const ParameterValue* n = find(f);
  if (n == nullptr) return;
  if (n->kind() != ParameterValue::Kind::kBool) return mismatch(f, *n, "true or false");
  v = n->boolean();
}

void ParameterReader::integer(const Field& f, std::int64_t& v, const IntRange& range) {
  const ParameterValue* n = find(f);
  if (n == nullptr) return;
  std::int64_t value = 0;
  if (n->kind() == ParameterValue::Kind::kInteger) {
    value = n->integer();
  } else if (n->is_number() && std::floor(n->number()) == n->number() &&
             std::fabs(n->number()) < 0x1p53) {
    value = static_cast<std::int64_t>(n->number());
  } else {
    return mismatch(f, *n, "a whole number");
  }
  if (value < range.min || value > range.max) {
    const bool open = range.max == std::numeric_limits<std::int64_t>::max();
    return mismatch(
        f, *n,
        open ? "at least " + std::to_string(range.min)
             : "in [" + std::to_string(range.min) + ", " + std::to_string(range.max) + "]");
  }
  v = value;
}

void ParameterReader::real(const Field& f, double& v, const RealRange& range) {
  const ParameterValue* n = find(f);
  if (n == nullptr) return;
  if (!n->is_number()) return mismatch(f, *n, "a number");
  const double value = n->number();
  const bool low = range.min_open ? value > range.min : value >= range.min;
  const bool high = range.max_open ? value < range.max : value <= range.max;
  if (!low || !high || (!range.allow_infinity && !std::isfinite(value))) {
    if (!std::isfinite(value)) return mismatch(f, *n, "a finite number");
    std::string expected;
    if (std::isinf(range.max))
      expected = (range.min_open ? "greater than " : "at least ") + number_text(range.min);
    else
      expected = std::string("in ") + (range.min_open ? "(" : "[") + number_text(range.min) + ", " +
                 number_text(range.max) + (range.max_open ? ")" : "]");
    return mismatch(f, *n, expected);
  }
  v = value;
}

void ParameterReader::text(const Field& f, std::string& v) {
  const ParameterValue* n = find(f);
  if (n == nullptr) return;
  if (!n->is_string()) return mismatch(f, *n, "a string");
  v = n->string();
}

void ParameterReader::duration(const Field& f, Duration& v, const DurationRange& range) {
  const ParameterValue* n = find(f);
  if (n == nullptr) return;
  const auto parsed = n->is_string() ? parse_go_duration(n->string()) : std::nullopt;
  if (!parsed) return mismatch(f, *n, "a duration such as 500ms or 2m");
  if (*parsed < range.min || *parsed > range.max)
    return mismatch(f, *n, "at least " + std::to_string(range.min.ns()) + "ns");
  v = *parsed;
}

void ParameterReader::choice(const Field& f, std::size_t& index,
                             std::span<const std::string_view> names) {
  const ParameterValue* n = find(f);
  if (n == nullptr) return;
  std::string expected = "one of";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (n->is_string() && n->string() == names[i]) {
      index = i;
      return;
    }
    expected += (i == 0 ? " '" : ", '") + std::string(names[i]) + "'";
  }
  mismatch(f, *n, expected);
}

void ParameterReader::document(const Field& f, Document&) {
  // No plugin embeds another document; a key of that kind would be a mistake of ours.
  if (const ParameterValue* n = find(f)) mismatch(f, *n, "left out");
}

void ParameterReader::object(const Field& f, const std::function<void(Describer&)>& members) {
  const ParameterValue* n = find(f);
  if (n == nullptr) return;
  ParameterReader inner = below(f, *n, path_of(f));
  if (!n->is_map()) return;
  members(inner);
  inner.finish();
}

void ParameterReader::list(const Field& f, ListAccess& items) {
  const ParameterValue* n = find(f);
  if (n == nullptr) return;
  if (!n->is_list()) return mismatch(f, *n, "a list");
  items.resize(n->list().size());
  const std::string base = path_of(f);
  for (std::size_t i = 0; i < n->list().size(); ++i) {
    const ParameterValue& item = n->list()[i];
    ParameterReader inner =
        below(f, item.is_map() ? item : node_, base + "[" + std::to_string(i) + "]");
    inner.element_ = &item;
    items.visit(i, inner);
  }
}

void ParameterReader::optional(const Field& f, OptionalAccess& value) {
  const ParameterValue* n = find(f);
  if (n == nullptr) return;
  value.engage(true);
  ParameterReader inner = below(f, node_, path_of(f));
  inner.element_ = n;
  value.visit(inner);
}

}  // namespace routesim::policies
