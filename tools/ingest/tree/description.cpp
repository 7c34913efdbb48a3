#include "tools/ingest/tree/description.h"

#include <array>
#include <cctype>

#include "base/scalar_parse.h"
#include "tools/ingest/tree/nodes.h"

namespace routesim::tools {

namespace {

using Kind = FieldDescription::Kind;

/// Fills the members of one object, or (for unnamed fields) the description it stands for.
class Builder final : public Describer {
 public:
  Builder(FieldDescription& target, bool open_all) : target_(target), open_all_(open_all) {}

  void boolean(const Field& f, bool& v) override {
    add(f, Kind::kBool).value = v ? "true" : "false";
  }
  void integer(const Field& f, std::int64_t& v, const IntRange& range) override {
    FieldDescription& field = add(f, Kind::kInteger);
    field.value = std::to_string(v);
    field.integer_range = range;
  }
  void real(const Field& f, double& v, const RealRange& range) override {
    FieldDescription& field = add(f, Kind::kReal);
    field.value = number_text(v);
    field.real_range = range;
  }
  void text(const Field& f, std::string& v) override { add(f, Kind::kText).value = v; }
  void duration(const Field& f, Duration& v, const DurationRange& range) override {
    FieldDescription& field = add(f, Kind::kDuration);
    field.value = duration_text(v);
    field.duration_range = range;
  }
  void choice(const Field& f, std::size_t& index,
              std::span<const std::string_view> names) override {
    FieldDescription& field = add(f, Kind::kChoice);
    field.value = std::string(names[index]);
    field.choices.assign(names.begin(), names.end());
  }
  void document(const Field& f, Document& v) override {
    FieldDescription& field = add(f, Kind::kDocument);
    field.value = v.path;
    field.document = v;
    field.engaged = !v.empty();
  }
  void object(const Field& f, const std::function<void(Describer&)>& members) override {
    Builder inner(add(f, Kind::kObject), open_all_);
    members(inner);
  }
  void list(const Field& f, ListAccess& items) override {
    FieldDescription& field = add(f, Kind::kList);
    for (std::size_t i = 0; i < items.size(); ++i) {
      field.members.emplace_back();
      Builder element(field.members.back(), false);
      items.visit(i, element);
    }
    if (!open_all_) return;
    items.resize(0);
    items.resize(1);
    field.element = std::make_shared<FieldDescription>();
    Builder element(*field.element, true);
    items.visit(0, element);
  }
  void optional(const Field& f, OptionalAccess& value) override {
    FieldDescription& field = add(f, Kind::kObject);
    field.engaged = value.engaged();
    if (open_all_) value.engage(true);
    if (value.engaged()) {
      Builder inner(field, open_all_);
      value.visit(inner);
    }
    field.optional = true;
  }

 private:
  /// The description of a named field, or the target itself for an unnamed one.
  FieldDescription& add(const Field& f, Kind kind) {
    FieldDescription* field = &target_;
    if (!f.name.empty()) {
      field = &target_.members.emplace_back();
      field->name = std::string(f.name);
      field->doc = std::string(f.doc);
      field->fate = f.fate;
      field->why = f.why;
      field->required = f.required;
    }
    field->kind = kind;
    return *field;
  }

  FieldDescription& target_;
  bool open_all_;
};

FieldDescription build(const DescribeFunction& describe_object, bool open_all) {
  FieldDescription root;
  Builder builder(root, open_all);
  describe_object(builder);
  return root;
}

ConfigNode::Ptr scalar_node(const FieldDescription& field) {
  // Text that would read back as something else keeps its quotes.
  const bool text = field.kind == Kind::kText || field.kind == Kind::kDocument;
  const bool quotes =
      text &&
      (field.value.empty() || plain_type(field.value) != PlainType::kText ||
       field.value.find_first_of(":#[]{},&*!|>'\"%@`\n\\") != std::string::npos ||
       field.value.front() == '-' || field.value.front() == '?' || field.value.front() == ' ' ||
       field.value.back() == ' ' || field.value == "null" || field.value == "~");
  return ConfigNode::make_scalar(
      field.value, quotes ? ConfigNode::Style::kQuoted : ConfigNode::Style::kPlain, {});
}

void collect(const FieldDescription& field, const std::string& path, const Provenance& provenance,
             std::vector<ResolvedValue>& out) {
  if (!field.engaged) return;
  const bool inline_document = field.kind == Kind::kDocument && field.value.empty();
  if (field.kind == Kind::kObject || field.kind == Kind::kList) {
    for (std::size_t i = 0; i < field.members.size(); ++i)
      collect(field.members[i],
              field.kind == Kind::kList ? element_path(path, i)
                                        : child_path(path, field.members[i].name),
              provenance, out);
    return;
  }
  const SourceLocation* place = provenance.find(path);
  std::string origin = "default";
  if (place != nullptr) {
    origin = place->file;
    if (place->line > 0)
      origin.append(":")
          .append(std::to_string(place->line))
          .append(":")
          .append(std::to_string(place->column));
  }
  out.push_back({path, inline_document ? "(in place)" : field.value, origin});
}

}  // namespace

FieldDescription describe_values(const DescribeFunction& describe_object) {
  return build(describe_object, false);
}

FieldDescription describe_types(const DescribeFunction& describe_object) {
  return build(describe_object, true);
}

std::string documentation(const FieldDescription& field) {
  if (field.fate == Fate::kUsed) return field.doc;
  std::string fate(fate_name(field.fate));
  fate.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(fate.front())));
  return field.doc + " " + fate + ": " + std::string(field.why) + ".";
}

std::string type_name(const FieldDescription& field) {
  constexpr std::array<std::string_view, 9> kNames = {
      "boolean", "integer", "number", "text", "duration", "choice", "document", "map", "list"};
  const std::string name(kNames.at(static_cast<std::size_t>(field.kind)));
  return field.element == nullptr ? name : name + " of " + type_name(*field.element);
}

std::string bounds_text(const FieldDescription& field) {
  if (field.kind == Kind::kInteger) return range_text(field.integer_range);
  if (field.kind == Kind::kReal) return range_text(field.real_range);
  if (field.kind == Kind::kDuration) return range_text(field.duration_range);
  if (field.kind == Kind::kList && field.element != nullptr) return bounds_text(*field.element);
  std::string names;
  for (const std::string& name : field.choices) add_word(names, name);
  return names;
}

ConfigNode::Ptr to_node(const FieldDescription& field) {
  if (field.kind == Kind::kDocument && field.value.empty()) return field.document.root;
  if (field.kind == Kind::kList) {
    std::vector<ConfigNode::Ptr> items;
    for (const FieldDescription& element : field.members) items.push_back(to_node(element));
    return ConfigNode::make_sequence(std::move(items), {});
  }
  if (field.kind != Kind::kObject) return scalar_node(field);
  std::vector<ConfigNode::Member> members;
  for (const FieldDescription& member : field.members) {
    if (!member.engaged) continue;
    ConfigNode::Member& added = members.emplace_back();
    added.key = member.name;
    added.value = to_node(member);
  }
  return ConfigNode::make_map(std::move(members), {});
}

std::vector<ResolvedValue> resolved_values(const FieldDescription& object,
                                           const Provenance& provenance) {
  std::vector<ResolvedValue> out;
  collect(object, {}, provenance, out);
  return out;
}

}  // namespace routesim::tools
