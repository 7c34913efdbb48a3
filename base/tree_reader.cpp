#include "base/tree_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/diagnostic.h"
#include "base/scalar_parse.h"
#include "base/text.h"

namespace routesim {

namespace {

/// The key that was probably meant: one letter off, or the same word inside a longer name.
std::string suggestion(const std::string& key, const std::vector<std::string>& candidates) {
  std::string close = nearest(key, candidates);
  constexpr std::size_t kShortestWord = 4;
  for (std::size_t i = 0; i < candidates.size() && close.empty(); ++i) {
    const std::string& candidate = candidates[i];
    const std::string& shorter = key.size() < candidate.size() ? key : candidate;
    const std::string& longer = key.size() < candidate.size() ? candidate : key;
    if (shorter.size() >= kShortestWord && longer.find(shorter) != std::string::npos)
      close = candidate;
  }
  return close;
}

/// The parts that all values of one read share.
struct Shared {
  Diagnostics& diagnostics;
  const ReadOptions& options;
};

/// The fate that all keys below some key share.
struct Subtree {
  Fate fate = Fate::kUsed;
  std::string_view why = {};
};

/// A value without keys of its own, at any depth.
bool is_leaf(const ConfigNode& node) {
  const auto is_bare = [](const ConfigNode::Ptr& item) {
    return !item->is_map() && is_leaf(*item);
  };
  return node.members().empty() && std::all_of(node.items().begin(), node.items().end(), is_bare);
}

/// A key that a reader put there itself stands where its value does.
bool is_made_up(const ConfigNode::Member& member) {
  const SourceLocation& key = member.key_where;
  const SourceLocation& value = member.value->where();
  return key.line > 0 && key.line == value.line && key.column == value.column &&
         key.file == value.file;
}

/// Reads one value (a map, or the element of a list or the content of an optional).
class Reader final : public Describer {
 public:
  Reader(ConfigNode::Ptr node, std::string path, const Shared& shared, const Subtree& subtree)
      : node_(std::move(node)), path_(std::move(path)), shared_(shared), subtree_(subtree) {}

  void boolean(const Field& f, bool& v) override {
    if (const auto child = find(f)) store(f, *child, parse_bool(*child), v);
  }
  void integer(const Field& f, std::int64_t& v, const IntRange& range) override {
    const auto child = find(f);
    if (child == nullptr) return;
    if (const auto whole = whole_real(*child); go() && whole)
      return store(f, *child, parse_integer(*tree::number(*whole), range), v);
    store(f, *child, parse_integer(*child, range), v);
  }
  void real(const Field& f, double& v, const RealRange& range) override {
    const auto child = find(f);
    if (child == nullptr) return;
    if (shared_.options.null_numbers && child->is_null())
      v = std::numeric_limits<double>::quiet_NaN();
    else
      store(f, *child, parse_real(*child, range), v);
  }
  void text(const Field& f, std::string& v) override {
    const auto child = find(f);
    if (child == nullptr) return;
    if (f.plain && child->is_scalar())
      store(f, *child, Parsed<std::string>{.value = child->text(), .message = {}, .hint = {}}, v);
    else
      store(f, *child, parse_text(*child), v);
  }
  void duration(const Field& f, Duration& v, const DurationRange& range) override {
    const auto child = find(f);
    if (child == nullptr) return;
    store(f, *child, go() ? parse_go_duration(*child, range) : parse_duration(*child, range), v);
  }
  void choice(const Field& f, std::size_t& index,
              std::span<const std::string_view> names) override {
    if (const auto child = find(f)) store(f, *child, parse_choice(*child, names), index);
  }
  void document(const Field& f, Document& v) override {
    const ConfigNode::Ptr child = find(f);
    if (child == nullptr) return;
    if (child->is_null()) {
      v = {};
    } else if (!child->is_scalar() || go()) {
      v = {.path = {}, .root = child};
    } else if (!child->text().empty() && child->style() != ConfigNode::Style::kBlock) {
      v = {.path = child->text(), .root = child};
    } else {
      shared_.diagnostics.error(child->where(), path_of(f),
                                "must be a map or the path of a file (" + got(*child) + ")");
    }
  }
  void object(const Field& f, const std::function<void(Describer&)>& members) override {
    const ConfigNode::Ptr child = find(f);
    if (child == nullptr || (go() && child->is_null())) return;
    if (!child->is_map()) {
      shared_.diagnostics.error(
          child->where(), path_of(f), "must be a map (" + got(*child) + ")",
          child->is_null() ? "remove the key, or indent its members below it" : "");
      return;
    }
    Reader inner(child, path_of(f), shared_, below(f));
    members(inner);
    inner.report_unknown({});
  }
  void list(const Field& f, ListAccess& items) override {
    const ConfigNode::Ptr child = find(f);
    if (child == nullptr) return;
    if (!child->is_sequence()) {
      shared_.diagnostics.error(child->where(), path_of(f), "must be a list (" + got(*child) + ")",
                                child->is_scalar() ? "write it in brackets: [...]" : "");
      return;
    }
    // Defaults of the list must not shine through as defaults of its new elements.
    items.resize(0);
    items.resize(child->items().size());
    for (std::size_t i = 0; i < child->items().size(); ++i) {
      Reader inner(child->items()[i], element_path(path_of(f), i), shared_, below(f));
      items.visit(i, inner);
    }
  }
  void optional(const Field& f, OptionalAccess& value) override {
    const ConfigNode::Ptr child = find(f);
    if (child == nullptr) return;
    if (child->is_null()) {
      value.engage(false);
      return;
    }
    value.engage(true);
    Reader inner(child, path_of(f), shared_, below(f));
    value.visit(inner);
  }

  void map(const Field& f, MapAccess& values) override {
    const ConfigNode::Ptr child = find(f);
    if (child == nullptr) return;
    if (!child->is_map()) {
      shared_.diagnostics.error(child->where(), path_of(f), "must be a map (" + got(*child) + ")");
      return;
    }
    const OwnKeys& own = values.own_keys();
    for (const ConfigNode::Member& member : child->members()) {
      if (own.takes != nullptr) {
        if (!own.takes(member.key)) continue;
        known_.push_back(member.key);
      }
      values.add(member.key);
      Reader inner(member.value, child_path(path_of(f), member.key), shared_, below(f));
      values.visit(values.size() - 1, inner);
    }
  }

  void report_unknown(const std::vector<std::string>& ignored) {
    for (const ConfigNode::Member& member : node_->members()) {
      if (std::find(known_.begin(), known_.end(), member.key) != known_.end()) continue;
      if (std::find(ignored.begin(), ignored.end(), member.key) != ignored.end()) continue;
      std::vector<std::string> candidates = known_;
      candidates.insert(candidates.end(), ignored.begin(), ignored.end());
      const std::string close = suggestion(member.key, candidates);
      report_unknown(member, close.empty() ? known_keys_hint() : "did you mean " + close + "?");
    }
  }

 private:
  bool go() const { return shared_.options.go_values; }

  void report_unknown(const ConfigNode::Member& member, std::string hint) {
    const bool is_error = shared_.options.unknown_key == Severity::kError;
    const std::string path = child_path(path_, member.key);
    shared_.diagnostics.add(
        {.severity = shared_.options.unknown_key,
         .where = member.key_where,
         .path = path,
         .message = is_error ? "unknown key" : "unknown key, ignored by this release",
         .hint = std::move(hint)});
    if (!is_error)
      shared_.diagnostics.key(key_use(member.key_where, shared_.options.format, path,
                                      Fate::kNoEffect, "this release does not know it"));
  }

  /// The whole number that a real such as 2.0 is; nothing for other values.
  static std::optional<std::int64_t> whole_real(const ConfigNode& node) {
    if (!node.is_scalar() || node.is_text() || plain_type(node.text()) != PlainType::kReal)
      return std::nullopt;
    const std::optional<double> value = parse_real(node, {}).value;
    if (!value || std::floor(*value) != *value || std::fabs(*value) >= 0x1p53) return std::nullopt;
    return static_cast<std::int64_t>(*value);
  }

  std::string path_of(const Field& f) const {
    return f.name.empty() ? path_ : child_path(path_, f.name);
  }

  /// The node of a key, or this node itself for the unnamed field of an element.
  ConfigNode::Ptr find(const Field& f) {
    if (f.name.empty()) {
      note_place(path_, *node_);
      return node_;
    }
    known_.emplace_back(f.name);
    if (const ConfigNode::Member* member = node_->find(f.name)) {
      note_place(path_of(f), *member->value);
      record(f, *member);
      if (!go() || !member->value->is_null()) return member->value;
    }
    if (f.required)
      shared_.diagnostics.error(node_->where(), path_of(f), "is missing", std::string(f.doc));
    return nullptr;
  }

  Subtree below(const Field& f) const {
    if (f.fate == Fate::kUsed) return subtree_;
    return {.fate = f.fate, .why = f.why};
  }

  /// Notes the fate of a key with a value of its own, and of a whole map that nobody reads. The
  /// keys of all other maps are noted one by one.
  void record(const Field& f, const ConfigNode::Member& member) {
    const Subtree key = below(f);
    const std::vector<ConfigNode::Member>& members = member.value->members();
    const bool is_short = std::all_of(members.begin(), members.end(), is_made_up);
    const bool is_whole =
        is_leaf(*member.value) || f.fate != Fate::kUsed || (member.value->is_map() && is_short);
    const std::string_view format = shared_.options.format;
    if (format.empty() || !is_whole || is_made_up(member)) return;
    shared_.diagnostics.key(
        key_use(member.key_where, format, path_of(f), key.fate, key.why, is_off(*member.value)));
  }

  void note_place(const std::string& path, const ConfigNode& node) {
    if (shared_.options.provenance != nullptr)
      shared_.options.provenance->record(path, node.where());
  }

  template <class T>
  void store(const Field& f, const ConfigNode& child, Parsed<T> parsed, T& v) {
    if (parsed.value) {
      v = std::move(*parsed.value);
    } else {
      shared_.diagnostics.error(child.where(), path_of(f), std::move(parsed.message),
                                std::move(parsed.hint));
    }
  }

  std::string known_keys_hint() const {
    constexpr std::size_t kMost = 12;
    std::string hint = "known keys: ";
    for (std::size_t i = 0; i < known_.size() && i < kMost; ++i)
      hint += (i == 0 ? "" : ", ") + known_[i];
    if (known_.empty()) return "no keys are known here";
    return known_.size() > kMost ? hint + ", ..." : hint;
  }

  ConfigNode::Ptr node_;
  std::string path_;
  const Shared& shared_;
  Subtree subtree_;
  std::vector<std::string> known_;
};

/// A pointer that does not own, for a root that outlives the read.
ConfigNode::Ptr borrow(const ConfigNode& node) { return ConfigNode::Ptr(ConfigNode::Ptr(), &node); }

}  // namespace

namespace {

void visit_keys(const ConfigNode& node, const std::string& path, const SourceLocation& key,
                const ConfigNode* left_out, const KeyVisitor& visit) {
  if (&node == left_out) return;
  if (is_leaf(node)) {
    if (!path.empty()) visit(node, path, key);
    return;
  }
  for (const ConfigNode::Member& member : node.members())
    visit_keys(*member.value, child_path(path, member.key), member.key_where, left_out, visit);
  for (std::size_t i = 0; i < node.items().size(); ++i)
    visit_keys(*node.items()[i], element_path(path, i), node.items()[i]->where(), left_out, visit);
}

}  // namespace

void for_each_key(const ConfigNode& root, const ConfigNode* left_out, const KeyVisitor& visit) {
  visit_keys(root, {}, root.where(), left_out, visit);
}

bool is_off(const ConfigNode& node) {
  if (node.is_scalar())
    return node.text().empty() || node.text() == "false" || node.text() == "0" ||
           node.text() == "0.0";
  return node.items().empty() && node.members().empty();
}

bool is_broken(const Diagnostics& diagnostics, const std::string& path) {
  const auto is_part = [](const std::string& inner, const std::string& outer) {
    return inner.starts_with(outer) && (inner.size() == outer.size() || outer.empty() ||
                                        inner[outer.size()] == '.' || inner[outer.size()] == '[');
  };
  return std::any_of(diagnostics.items().begin(), diagnostics.items().end(),
                     [&](const Diagnostic& d) {
                       // An error without a path is one of the text, such as a key that stands
                       // twice.
                       return d.severity == Severity::kError && !d.path.empty() &&
                              (is_part(d.path, path) || is_part(path, d.path));
                     });
}

void append(Diagnostics& to, const Diagnostics& from) {
  for (const Diagnostic& d : from.items()) to.add(d);
  for (const KeyUse& use : from.keys()) to.key(use);
}

std::string child_path(const std::string& parent, std::string_view key) {
  const std::string safe = printable(key);
  return parent.empty() ? safe : parent + "." + safe;
}

std::string element_path(const std::string& parent, std::size_t index) {
  std::string path = parent;
  path.append("[").append(std::to_string(index)).append("]");
  return path;
}

void read_config(const ConfigNode& root, const DescribeFunction& describe_object,
                 Diagnostics& diagnostics, const ReadOptions& options) {
  if (!root.is_map() && !(options.go_values && root.is_null())) {
    diagnostics.error(root.where(), options.path, "must be a map (" + got(root) + ")");
    return;
  }
  // A document that stands in a file of its own keeps the place of the reference to it.
  if (options.provenance != nullptr && options.provenance->find(options.path) == nullptr)
    options.provenance->record(options.path, root.where());
  const Shared shared{diagnostics, options};
  Reader reader(borrow(root), options.path, shared, {});
  describe_object(reader);
  reader.report_unknown(options.ignored_keys);
}

const SourceLocation* Provenance::find(const std::string& path) const {
  const auto it = places_.find(path);
  return it == places_.end() ? nullptr : &it->second;
}

SourceLocation Provenance::nearest(const std::string& path) const {
  std::string rest = path;
  while (true) {
    if (const SourceLocation* place = find(rest)) return *place;
    const std::size_t cut = rest.find_last_of(".[");
    if (cut == std::string::npos) break;
    rest.resize(cut);
  }
  const SourceLocation* root = find("");
  return root != nullptr ? *root : SourceLocation{};
}

std::set<std::string> Provenance::files() const {
  std::set<std::string> files;
  for (const auto& [path, where] : places_) files.insert(where.file);
  return files;
}

Diagnostics Provenance::located(const Diagnostics& diagnostics,
                                const std::vector<std::string>& prefixes) const {
  const auto first_key = [](const std::string& path) {
    return path.substr(0, path.find_first_of(".["));
  };
  Diagnostics out;
  for (Diagnostic d : diagnostics.items()) {
    if (d.where.file.empty()) {
      for (const std::string& prefix : prefixes) {
        const bool is_here = d.path.empty() || find(first_key(d.path)) != nullptr;
        if (!is_here && find(child_path(prefix, first_key(d.path))) != nullptr)
          d.path = prefix + "." + d.path;
      }
      d.where = nearest(d.path);
    }
    out.add(std::move(d));
  }
  for (const KeyUse& use : diagnostics.keys()) out.key(use);
  return out;
}

}  // namespace routesim
