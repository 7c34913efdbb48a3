// A config struct is described once. The YAML reader, `--set`, the echo of resolved values, the
// JSON Schema and the reference page are all visitors of that one description (design law 9).
//
// A described struct T has a free function in T's namespace
//
//     void describe(Describer& d, T& t) {
//       field(d, {"replicas", "Model servers in the pool."}, t.replicas, IntRange{1, 65536});
//       field(d, {"engine", "How each server schedules."}, t.engine);  // a described struct
//       field(d, {"stages", "Load stages, in order."}, t.stages);      // a std::vector of them
//       field(d, {"timeout", "Absent means none."}, t.timeout);            // std::optional
//     }
//
// and nothing else. The value a member has before the visit is its default.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/key_fate.h"
#include "base/units.h"

namespace routesim {

/// The documentation of one key.
struct Field {
  std::string_view name;      ///< The key as written in YAML, snake_case.
  std::string_view doc;       ///< One or two sentences, with the unit.
  bool required = false;      ///< True when a missing key is an error.
  Fate fate = Fate::kUsed;    ///< The description of a struct is also its ledger of keys.
  std::string_view why = {};  ///< Required unless the key is used; see KeyRule::why.
  bool plain = false;         ///< Text that may look like a number, such as 1.0.
  bool null = false;          ///< Of results: null where there is no value. Else it is left out.
  bool one_line = false;      ///< Of results: a list of numbers on one line.
};

/// Inclusive bounds of an integer.
struct IntRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

/// Bounds of a real number; an open bound excludes its value. NaN is never in range, and infinity
/// is only where `allow_infinity` says so.
struct RealRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;
  bool max_open = false;
  bool allow_infinity = false;
};

/// Inclusive bounds of a duration.
struct DurationRange {
  Duration min = Duration::zero();
  Duration max = Duration::max();
};

/// A node of the parsed file, defined by the reader in tools/; opaque to libraries.
class ConfigNode;

/// A document of another format, embedded in place or named by path: an EndpointPickerConfig, an
/// inference-perf config, a trace. The library only carries it; tools/ reads it.
struct Document {
  std::string path;                        ///< As written; empty when the document stands inline.
  std::shared_ptr<const ConfigNode> root;  ///< The inline node, or the reference's own node.
  bool empty() const { return path.empty() && root == nullptr; }
};

/// Writes element access to a list without knowing its element type.
class ListAccess {
 public:
  virtual ~ListAccess() = default;
  virtual std::size_t size() const = 0;
  virtual void resize(std::size_t n) = 0;
  virtual void visit(std::size_t i, class Describer& d) = 0;
};

/// Writes access to an optional value.
class OptionalAccess {
 public:
  virtual ~OptionalAccess() = default;
  virtual bool engaged() const = 0;
  virtual void engage(bool on) = 0;            ///< Engaging gives the type's default value.
  virtual void visit(class Describer& d) = 0;  ///< Only when engaged.
};

/// Values under keys of their own, in order: what is measured decides which keys there are.
template <class T>
struct Named {
  std::vector<std::pair<std::string, T>> items;
};

/// Which keys belong to a map that has no name, and so stands among the keys of its owner.
struct OwnKeys {
  std::string_view pattern = {};  ///< A regular expression (ECMAScript).
  bool (*takes)(std::string_view key) = nullptr;
};

/// Access to a map without its element type.
class MapAccess {
 public:
  virtual ~MapAccess() = default;
  virtual std::size_t size() const = 0;
  virtual const std::string& key(std::size_t i) const = 0;
  virtual void add(const std::string& key) = 0;  ///< A value of the type's default.
  virtual void visit(std::size_t i, class Describer& d) = 0;
  virtual const OwnKeys& own_keys() const = 0;
};

/// Receives the description of a struct, key by key.
class Describer {
 public:
  virtual ~Describer() = default;
  virtual void boolean(const Field& f, bool& v) = 0;
  virtual void integer(const Field& f, std::int64_t& v, const IntRange& range) = 0;
  virtual void real(const Field& f, double& v, const RealRange& range) = 0;
  virtual void text(const Field& f, std::string& v) = 0;
  /// Written `250ms`, `1.5s`, `2m`, `300us`, or a bare number of seconds.
  virtual void duration(const Field& f, Duration& v, const DurationRange& range) = 0;
  /// One of a closed set of names; `index` points into `names`.
  virtual void choice(const Field& f, std::size_t& index,
                      std::span<const std::string_view> names) = 0;
  virtual void document(const Field& f, Document& v) = 0;
  /// A nested struct: the visitor calls `members` with itself (or a sub-visitor), or not at all
  /// when the key is absent.
  virtual void object(const Field& f, const std::function<void(Describer&)>& members) = 0;
  virtual void list(const Field& f, ListAccess& items) = 0;
  virtual void optional(const Field& f, OptionalAccess& value) = 0;
  /// Only results have maps.
  virtual void map(const Field&, MapAccess&) {}
};

/// Names of an enumeration for `choice`. Specialise next to the enum:
///   template <> struct EnumNames<Colour> {
///     static constexpr std::array<std::string_view, 2> value = {"red", "blue"};
///   };
/// in the order of the enumerators, which must count from 0.
template <class E>
struct EnumNames;

template <class E>
concept DescribedEnum = std::is_enum_v<E> && requires {
  EnumNames<E>::value.size();
};

/// The name of an enumerator.
template <DescribedEnum E>
constexpr std::string_view enum_name(E e) {
  return EnumNames<E>::value[static_cast<std::size_t>(e)];
}

inline void field(Describer& d, const Field& f, bool& v) { d.boolean(f, v); }
inline void field(Describer& d, const Field& f, std::int64_t& v, const IntRange& r = {}) {
  d.integer(f, v, r);
}
/// Any narrower integer: the range is clipped to the type.
template <class I>
requires(std::is_integral_v<I> && !std::is_same_v<I, bool> &&
         !std::is_same_v<I, std::int64_t>) void field(Describer& d, const Field& f, I& v,
                                                      IntRange r = {}) {
  if constexpr (sizeof(I) < sizeof(std::int64_t)) {
    r.min = std::max<std::int64_t>(r.min, std::numeric_limits<I>::min());
    r.max = std::min<std::int64_t>(r.max, std::numeric_limits<I>::max());
  } else {
    r.min = std::max<std::int64_t>(r.min, 0);
  }
  auto wide = static_cast<std::int64_t>(v);
  d.integer(f, wide, r);
  v = static_cast<I>(wide);
}
template <class Tag>
void field(Describer& d, const Field& f, Quantity<Tag>& v, const IntRange& r = {0}) {
  std::int64_t n = v.value();
  d.integer(f, n, r);
  v = Quantity<Tag>(n);
}
inline void field(Describer& d, const Field& f, double& v, const RealRange& r = {}) {
  d.real(f, v, r);
}
inline void field(Describer& d, const Field& f, std::string& v) { d.text(f, v); }
inline void field(Describer& d, const Field& f, Duration& v, const DurationRange& r = {}) {
  d.duration(f, v, r);
}
inline void field(Describer& d, const Field& f, Document& v) { d.document(f, v); }
template <DescribedEnum E>
void field(Describer& d, const Field& f, E& v) {
  auto index = static_cast<std::size_t>(v);
  d.choice(f, index, EnumNames<E>::value);
  v = static_cast<E>(index);
}
/// A described struct.
template <class T>
requires requires(Describer& d, T& t) { describe(d, t); }
void field(Describer& d, const Field& f, T& v) {
  d.object(f, [&v](Describer& inner) { describe(inner, v); });
}
template <class T, class... Range>
void field(Describer& d, const Field& f, std::vector<T>& v, const Range&... range);
template <class T, class... Range>
void field(Describer& d, const Field& f, std::optional<T>& v, const Range&... range);

template <class T, class... Range>
void field(Describer& d, const Field& f, std::vector<T>& v, const Range&... range) {
  struct Access final : ListAccess {
    explicit Access(std::vector<T>& items, const Range&... r) : v(items), bounds(r...) {}
    std::size_t size() const override { return v.size(); }
    void resize(std::size_t n) override { v.resize(n); }
    void visit(std::size_t i, Describer& inner) override {
      std::apply([&](const Range&... r) { field(inner, Field{"", ""}, v[i], r...); }, bounds);
    }
    std::vector<T>& v;
    std::tuple<Range...> bounds;
  } access(v, range...);
  d.list(f, access);
}
template <class T, class... Range>
void field(Describer& d, const Field& f, std::optional<T>& v, const Range&... range) {
  struct Access final : OptionalAccess {
    explicit Access(std::optional<T>& o, const Range&... r) : v(o), bounds(r...) {}
    bool engaged() const override { return v.has_value(); }
    void engage(bool on) override {
      if (on && !v) v.emplace();
      if (!on) v.reset();
    }
    void visit(Describer& inner) override {
      std::apply([&](const Range&... r) { field(inner, Field{"", ""}, *v, r...); }, bounds);
    }
    std::optional<T>& v;
    std::tuple<Range...> bounds;
  } access(v, range...);
  d.optional(f, access);
}

template <class T>
void field(Describer& d, const Field& f, Named<T>& v, const OwnKeys& keys = {}) {
  struct Access final : MapAccess {
    Access(Named<T>& named, const OwnKeys& own) : v(named), keys(own) {}
    std::size_t size() const override { return v.items.size(); }
    const std::string& key(std::size_t i) const override { return v.items[i].first; }
    void add(const std::string& key) override { v.items.emplace_back(key, T()); }
    void visit(std::size_t i, Describer& inner) override {
      field(inner, Field{"", ""}, v.items[i].second);
    }
    const OwnKeys& own_keys() const override { return keys; }
    Named<T>& v;
    const OwnKeys& keys;
  } access(v, keys);
  d.map(f, access);
}

/// A key that changes nothing that a simulation shows.
constexpr Field no_effect(std::string_view name, std::string_view doc, std::string_view why) {
  return {.name = name, .doc = doc, .required = false, .fate = Fate::kNoEffect, .why = why};
}

/// A key that counts in a simpler way than in the real system.
constexpr Field approximated(std::string_view name, std::string_view doc, std::string_view how) {
  return {.name = name, .doc = doc, .required = false, .fate = Fate::kApproximated, .why = how};
}

/// A key that the real system uses and the simulation does not. Whoever reads it says so, by a
/// warning or an error.
constexpr Field not_modelled(std::string_view name, std::string_view doc, std::string_view why) {
  return {.name = name, .doc = doc, .required = false, .fate = Fate::kNotModelled, .why = why};
}

}  // namespace routesim
