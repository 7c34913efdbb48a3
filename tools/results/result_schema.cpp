#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tools/results/described_json.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

namespace {

using tree::Node;

/// A value's part of the schema.
struct Type {
  Node node;
  std::string doc = {};  ///< A reference: what its definition says.
};

std::string json_of(const Node& node) {
  JsonWriter json(0);
  write_tree(json, *node);
  return json.str();
}

/// The node with one more member, in front.
Node with(std::string_view key, Node value, const Node& node) {
  std::vector<ConfigNode::Member> members = {
      {.key = std::string(key), .key_where = {}, .value = std::move(value)}};
  members.insert(members.end(), node->members().begin(), node->members().end());
  return ConfigNode::make_map(std::move(members), {});
}

Type scalar_type(const char* type, bool null) {
  return {.node = tree::map({{"type", null ? tree::list({tree::text(type), tree::text("null")})
                                           : tree::text(type)}})};
}

Type or_null(const Type& type) {
  const ConfigNode* const name = type.node->child("type");
  if (type.node->members().size() == 1 && name != nullptr && name->is_scalar())
    return scalar_type(name->text().c_str(), true);
  return {.node = tree::map({{"anyOf", tree::list({type.node, scalar_type("null", false).node})}})};
}

/// A kind of object that stands under many keys, by the key where it is met first.
struct Kind {
  std::string_view key, name, doc;
};
constexpr std::array<Kind, 5> kKinds = {
    {{"schedule_delay", "distribution",
      "Statistics of one value per request (of inter-token latency: per token). Percentiles are "
      "linear interpolations between order statistics; the load tool decides which ones there are. "
      "The percentile 50 is called `median`."},
     {"kv_cache_usage", "usage", "Share of the KV blocks in use, 0 to 1."},
     {"disk_wait_s", "waits", "Waits for copies between KV tiers."},
     {"as_is", "band_side", "A stage with another KV capacity."},
     {"classes", "traffic_class", "The requests of one traffic class, of the reported stages."}}};

/// The kinds of objects met so far; each is defined once, under the first name. A name that is
/// taken follows the owner's.
class Definitions {
 public:
  Type reference(const std::string& owner, const std::string& name, std::string doc,
                 const Node& object) {
    const std::string json = json_of(object);
    auto found = std::ranges::find(items_, json, &Item::json);
    if (found == items_.end()) {
      for (const Kind& kind : kKinds)
        if (name == kind.name) doc = kind.doc;
      const bool taken = std::ranges::find(items_, name, &Item::name) != items_.end();
      items_.push_back({.name = taken ? owner + "_" + name : name,
                        .json = json,
                        .doc = doc,
                        .node = with("description", tree::text(doc), object)});
      found = items_.end() - 1;
    }
    return {.node = tree::map({{"$ref", tree::text("#/definitions/" + found->name)}}),
            .doc = found->doc};
  }
  Node node() const {
    tree::Map map;
    for (const Item& item : items_) map.emplace_back(item.name, item.node);
    return tree::map(std::move(map));
  }

 private:
  struct Item {
    std::string name, json, doc;
    Node node;
  };
  std::vector<Item> items_;
};

/// The name of what stands under a key; `stages` has a stage in each of its places.
std::string definition_of(std::string_view name, bool is_many) {
  for (const Kind& kind : kKinds)
    if (name == kind.key) return std::string(kind.name);
  if (!is_many) return std::string(name);
  if (name == "series" || !name.ends_with('s')) return std::string(name);
  name.remove_suffix(name.ends_with("sses") ? 2 : 1);
  return std::string(name);
}

/// Collects the properties of one object, or the type of one unnamed value.
class Schema final : public Describer {
 public:
  Schema(Definitions& definitions, std::string owner, std::string name)
      : definitions_(definitions), owner_(std::move(owner)), name_(std::move(name)) {}

  void boolean(const Field& f, bool&) override { add(f, scalar_type("boolean", f.null)); }
  void integer(const Field& f, std::int64_t&, const IntRange&) override {
    add(f, scalar_type("integer", f.null));
  }
  void real(const Field& f, double&, const RealRange&) override {
    add(f, scalar_type("number", f.null));
  }
  void text(const Field& f, std::string&) override { add(f, scalar_type("string", f.null)); }
  void duration(const Field& f, Duration&, const DurationRange&) override {
    add(f, scalar_type("string", f.null));
  }
  void choice(const Field& f, std::size_t&, std::span<const std::string_view> names) override {
    std::vector<Node> values;
    for (const std::string_view name : names) values.push_back(tree::text(std::string(name)));
    add(f, {.node = tree::map({{"type", tree::text("string")}, {"enum", tree::list(values)}})});
  }
  void document(const Field& f, Document&) override { add(f, scalar_type("object", false), false); }
  void object(const Field& f, const std::function<void(Describer&)>& members) override {
    Schema inner = inside(f, false);
    members(inner);
    add(f, definitions_.reference(inner.owner_, inner.name_, inner.doc_, inner.object_node()));
  }
  void list(const Field& f, ListAccess& items) override {
    items.resize(1);
    Schema element = inside(f, true);
    items.visit(0, element);
    const ConfigNode* const type = element.type_.node->child("type");
    const bool null = f.null && type != nullptr && type->text() == "number";
    add(f, {.node = tree::map(
                {{"type", tree::text("array")},
                 {"items", null ? scalar_type("number", true).node : element.type_.node}})});
  }
  void optional(const Field& f, OptionalAccess& value) override {
    value.engage(true);
    Schema inner = inside(f, false);
    value.visit(inner);
    add(f, f.null ? or_null(inner.type_) : inner.type_, f.null);
  }
  void map(const Field& f, MapAccess& values) override {
    values.add("");
    Schema element = inside(f, true);
    values.visit(0, element);
    const Type value = f.null ? or_null(element.type_) : element.type_;
    if (values.own_keys().takes != nullptr)
      pattern_ = tree::map({{std::string(values.own_keys().pattern), with_doc(value, f.doc)}});
    else
      add(f, {.node = tree::map(
                  {{"type", tree::text("object")}, {"additionalProperties", value.node}})});
  }

  /// The object with what was collected.
  Node object_node() const {
    tree::Map map = {{"type", tree::text("object")},
                     {"additionalProperties", tree::boolean(false)},
                     {"required", tree::list(required_)},
                     {"properties", tree::map(properties_)}};
    if (pattern_ != nullptr) map.emplace_back("patternProperties", pattern_);
    return tree::map(std::move(map));
  }

 private:
  /// A visitor of what stands in a list, a map or an optional.
  Schema inside(const Field& f, bool is_many) const {
    Schema inner = f.name.empty() ? Schema(definitions_, owner_, name_)
                                  : Schema(definitions_, name_, definition_of(f.name, is_many));
    inner.doc_ = f.name.empty() ? doc_ : std::string(f.doc);
    return inner;
  }
  /// In draft-07 what stands beside a reference does not count.
  static Node with_doc(const Type& type, std::string_view doc) {
    if (doc.empty()) return type.node;
    if (type.doc == doc) return type.node;
    if (!type.doc.empty())
      return tree::map(
          {{"description", tree::text(std::string(doc))}, {"anyOf", tree::list({type.node})}});
    return with("description", tree::text(std::string(doc)), type.node);
  }
  void add(const Field& f, const Type& type, bool is_required = true) {
    if (f.name.empty()) {
      type_ = type;
      return;
    }
    properties_.emplace_back(std::string(f.name), with_doc(type, f.doc));
    if (is_required) required_.push_back(tree::text(std::string(f.name)));
  }

  Definitions& definitions_;
  std::string owner_, name_, doc_;
  tree::Map properties_;
  std::vector<Node> required_;
  Node pattern_;
  Type type_;
};

}  // namespace

std::string result_schema() {
  Definitions definitions;
  Schema root(definitions, "", "result");
  RunRecord record;
  describe(root, record);
  std::vector<ConfigNode::Member> members =
      tree::map(
          {{"$schema", tree::text("http://json-schema.org/draft-07/schema#")},
           {"title", tree::text("routesim result")},
           {"description",
            tree::text("What `routesim run --output json` prints. Times are in seconds, rates "
                       "per second, shares from 0 to 1, unless a description says otherwise. "
                       "Keys may be added in later versions; none changes its meaning.")}})
          ->members();
  const Node object = root.object_node();
  members.insert(members.end(), object->members().begin(), object->members().end());
  const ConfigNode::Ptr parts = tree::map({{"definitions", definitions.node()}});
  members.push_back(parts->members().front());
  JsonWriter json;
  write_tree(json, *ConfigNode::make_map(std::move(members), {}));
  return json.str() + "\n";
}

}  // namespace routesim::tools
