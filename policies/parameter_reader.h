// Reads described structs out of ParameterValue trees, with every error at its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "policies/endpoint_picker_config.h"
#include "policies/parameter_value.h"

namespace routesim::policies {

/// What happens to keys nobody described.
enum class UnknownKeys {
  kError,    ///< August 2026 and later decode strictly.
  kWarning,  ///< Older releases ignore them, so say that they have no effect.
};

/// Describer that fills a struct from a map. Absent keys and nulls keep the default, as in Go.
class ParameterReader final : public Describer {
 public:
  /// `node` is a map or null; anything else is an error.
  ParameterReader(const ParameterValue& node, std::string path, UnknownKeys unknown,
                  Diagnostics& diagnostics, Fate fate = Fate::kUsed, std::string_view why = {});
  /// Reports keys that no field asked for. Call once, after describing.
  void finish();

  void boolean(const Field& f, bool& v) override;
  void integer(const Field& f, std::int64_t& v, const IntRange& range) override;
  void real(const Field& f, double& v, const RealRange& range) override;
  void text(const Field& f, std::string& v) override;
  void duration(const Field& f, Duration& v, const DurationRange& range) override;
  void choice(const Field& f, std::size_t& index, std::span<const std::string_view> names) override;
  void document(const Field& f, Document& v) override;
  void object(const Field& f, const std::function<void(Describer&)>& members) override;
  void list(const Field& f, ListAccess& items) override;
  void optional(const Field& f, OptionalAccess& value) override;

 private:
  const ParameterValue* find(const Field& f);
  /// A reader of a value below `f`, whose keys share its fate.
  ParameterReader below(const Field& f, const ParameterValue& node, std::string path) const;
  void record(const Field& f, const ParameterValue& value);
  std::string path_of(const Field& f) const;
  void mismatch(const Field& f, const ParameterValue& v, std::string_view expected);

  const ParameterValue& node_;
  std::string path_;
  UnknownKeys unknown_;
  Diagnostics& diagnostics_;
  Fate fate_;  // Of every key, unless its field says otherwise.
  std::string_view why_;
  std::vector<std::string> known_;
  const ParameterValue* element_ = nullptr;  // The list element or optional being visited.
};

/// Reads the parameters of a plugin.
template <class P>
P read_parameters(const PluginSpec& spec, UnknownKeys unknown, Diagnostics& diagnostics) {
  P p{};
  ParameterReader reader(spec.parameters, spec.path.empty() ? spec.name : spec.path + ".parameters",
                         unknown, diagnostics);
  describe(reader, p);
  reader.finish();
  return p;
}

}  // namespace routesim::policies
