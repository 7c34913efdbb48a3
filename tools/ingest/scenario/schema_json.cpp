#include "tools/ingest/scenario/schema_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/scalar_parse.h"
#include "tools/results/described_json.h"

namespace routesim::tools {

namespace {

using Kind = FieldDescription::Kind;

constexpr std::string_view kDurationPattern =
    "^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|ms|s|m|h)$";

class SchemaWriter {
 public:
  explicit SchemaWriter(const SchemaOptions& options) : options_(options) {}

  std::string str(const FieldDescription& object) {
    json_.begin_object().member("$schema", "http://json-schema.org/draft-07/schema#");
    if (!options_.id.empty()) json_.member("$id", options_.id);
    json_.member("title", options_.title).member("description", options_.description);
    json_.member("type", "object").member("additionalProperties", false);
    json_.key("properties").begin_object();
    write_members(object);
    if (!options_.variants_key.empty()) write_variants(object);
    json_.end_object();
    write_required(object);
    json_.end_object();
    return json_.str() + "\n";
  }

 private:
  void write_type(std::string_view name, bool nullable) {
    if (!nullable) {
      json_.member("type", name);
      return;
    }
    json_.key("type").begin_array().value(name).value("null").end_array();
  }

  void write_members(const FieldDescription& object) {
    for (const FieldDescription& member : object.members) {
      json_.key(member.name);
      write_field(member);
      const std::string_view other =
          options_.other_name ? options_.other_name(member.name) : std::string_view();
      if (other.empty()) continue;
      json_.key(other);
      write_field(member);
    }
  }

  void write_required(const FieldDescription& object) {
    if (options_.partial || std::ranges::none_of(object.members, &FieldDescription::required))
      return;
    json_.key("required").begin_array();
    for (const FieldDescription& member : object.members)
      if (member.required) json_.value(member.name);
    json_.end_array();
  }

  void write_variants(const FieldDescription& object) {
    json_.key(options_.variants_key).begin_object();
    json_.member("description", "What is compared: each variant lays its keys over the others.");
    json_.member("type", "array").member("minItems", 1);
    json_.key("items").begin_object().member("type", "object");
    json_.member("additionalProperties", false).key("properties").begin_object();
    json_.key("name").begin_object().member("type", "string");
    json_.member("description", "Name of the variant, as printed in results.").end_object();
    for (const FieldDescription& member : object.members) {
      if (member.name == "name") continue;
      json_.key(member.name);
      write_field(member);
    }
    json_.end_object();
    json_.key("required").begin_array().value("name").end_array();
    json_.end_object().end_object();
  }

  void write_field(const FieldDescription& field) {
    json_.begin_object();
    if (!field.doc.empty()) json_.member("description", documentation(field));
    write_body(field);
    json_.end_object();
  }

  void write_default(const FieldDescription& field) {
    if (field.required || !field.engaged || field.name.empty()) return;
    if (field.kind == Kind::kDocument || (field.kind == Kind::kText && field.value.empty())) return;
    // JSON has no infinity.
    if (field.kind == Kind::kReal && plain_type(field.value) == PlainType::kNotFinite) return;
    json_.key("default");
    if (field.kind == Kind::kBool) {
      json_.value(field.value == "true");
    } else if (field.kind == Kind::kInteger || field.kind == Kind::kReal) {
      json_.raw(field.value);
    } else {
      json_.value(field.value);
    }
  }

  void write_body(const FieldDescription& field) {
    const bool nullable = field.optional;
    switch (field.kind) {
      case Kind::kBool:
        write_type("boolean", nullable);
        break;
      case Kind::kInteger:
        write_type("integer", nullable);
        write_integer_bounds(field.integer_range);
        break;
      case Kind::kReal:
        write_type("number", nullable);
        write_real_bounds(field.real_range);
        break;
      case Kind::kText:
        write_type("string", nullable);
        break;
      case Kind::kDuration:
        write_duration(field);
        break;
      case Kind::kChoice:
        json_.key("enum").begin_array();
        for (const std::string& name : field.choices) json_.value(name);
        if (nullable) json_.null();
        json_.end_array();
        break;
      case Kind::kDocument:
        json_.key("type").begin_array();
        for (const char* type : {"string", "object", "array", "null"}) json_.value(type);
        json_.end_array();
        break;
      case Kind::kObject:
        write_object(field);
        return;
      case Kind::kList:
        write_type("array", nullable);
        json_.key("items");
        if (options_.text_shorthand && options_.text_shorthand(field.name)) {
          write_object_or_text(*field.element);
        } else {
          write_field(*field.element);
        }
        return;
    }
    write_default(field);
  }

  void write_object(const FieldDescription& field) {
    std::vector<const char*> types = {"object"};
    if (options_.integer_shorthand && options_.integer_shorthand(field.name))
      types.push_back("integer");
    if (options_.text_shorthand && options_.text_shorthand(field.name)) types.push_back("string");
    if (field.optional) types.push_back("null");
    if (types.size() == 1) {
      json_.member("type", types.front());
    } else {
      json_.key("type").begin_array();
      for (const char* type : types) json_.value(type);
      json_.end_array();
    }
    const bool open = options_.flags && options_.flags(field.name);
    json_.member("additionalProperties", open).key("properties").begin_object();
    write_members(field);
    json_.end_object();
    write_required(field);
  }

  void write_object_or_text(const FieldDescription& element) {
    json_.begin_object().key("anyOf").begin_array();
    json_.begin_object().member("type", "string").end_object();
    write_field(element);
    json_.end_array().end_object();
  }

  void write_integer_bounds(const IntRange& range) {
    if (range.min != std::numeric_limits<std::int64_t>::min()) json_.member("minimum", range.min);
    if (range.max != std::numeric_limits<std::int64_t>::max()) json_.member("maximum", range.max);
  }

  void write_real_bounds(const RealRange& range) {
    if (std::isfinite(range.min))
      json_.member(range.min_open ? "exclusiveMinimum" : "minimum", range.min);
    if (std::isfinite(range.max))
      json_.member(range.max_open ? "exclusiveMaximum" : "maximum", range.max);
  }

  void write_duration(const FieldDescription& field) {
    json_.key("anyOf").begin_array();
    json_.begin_object().member("type", "number");
    if (field.duration_range.min != Duration::nanoseconds(std::numeric_limits<std::int64_t>::min()))
      json_.member("minimum", field.duration_range.min.to_seconds());
    json_.end_object();
    json_.begin_object().member("type", "string").member("pattern", kDurationPattern).end_object();
    if (field.optional) json_.begin_object().member("type", "null").end_object();
    json_.end_array();
  }

  const SchemaOptions& options_;
  JsonWriter json_;
};

/// A cell of a Markdown table: no bars, no line breaks.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

std::string default_text(const FieldDescription& field) {
  if (field.required) return "required";
  if (!field.engaged) return "none";
  if (field.kind == Kind::kObject || field.kind == Kind::kList) return "";
  return code(field.value);
}

class ReferenceWriter {
 public:
  void write(const FieldDescription& object, const std::string& heading, const std::string& doc) {
    out_ += "\n## " + heading + "\n\n";
    if (!doc.empty()) out_ += doc + "\n\n";
    constexpr std::size_t kLong = 2'000;  // Bytes of tables that are not printed twice.
    if (const std::string all = all_rows(object); all.size() > kLong)
      if (const auto [same, is_new] = written_.emplace(all, heading); !is_new) {
        out_ += "The keys of " + same->second + ".\n";
        return;
      }
    out_ += "| Key | Type | Default | Bounds | Meaning |\n| --- | --- | --- | --- | --- |\n";
    out_ += rows(object);
    for (const FieldDescription& member : object.members) descend(member, heading);
  }
  const std::string& str() const { return out_; }

 private:
  static std::string rows(const FieldDescription& object) {
    std::string out;
    for (const FieldDescription& member : object.members)
      out += "| " + code(member.name) + " | " + type_name(member) + " | " + default_text(member) +
             " | " + cell(bounds_text(member)) + " | " + cell(documentation(member)) + " |\n";
    return out;
  }
  static std::string all_rows(const FieldDescription& object) {
    std::string out = rows(object);
    for (const FieldDescription& member : object.members)
      out += all_rows(member.kind == Kind::kList ? *member.element : member);
    return out;
  }
  void descend(const FieldDescription& member, const std::string& heading) {
    const bool at_root = heading.front() != '`';
    std::string path = at_root ? "`" : heading.substr(0, heading.size() - 1) + ".";
    path += member.name;
    if (member.kind == Kind::kObject && !member.members.empty())
      write(member, path + "`", documentation(member));
    if (member.kind == Kind::kList && member.element->kind == Kind::kObject)
      write(*member.element, path + "[]`", documentation(member));
  }

  std::string out_;
  std::map<std::string, std::string> written_;  ///< Headings of long tables, by all their rows.
};

}  // namespace

std::string schema_json(const FieldDescription& object, const SchemaOptions& options) {
  return SchemaWriter(options).str(object);
}

std::string reference_markdown(const FieldDescription& object, const std::string& title) {
  ReferenceWriter writer;
  writer.write(object, title, "");
  return "<!-- Generated by `routesim schema --output markdown`. Do not edit. -->\n# " + title +
         "\n" + writer.str();
}

}  // namespace routesim::tools
