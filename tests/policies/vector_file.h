// Reading tests/vectors/*.json.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace routesim::test {

using Json = nlohmann::ordered_json;

/// The cases of one vector file, by name without folder and extension.
inline std::vector<Json> vector_cases(const std::string& name) {
  const std::string path = std::string(ROUTESIM_SOURCE_DIR) + "/tests/vectors/" + name + ".json";
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  const Json file = Json::parse(in);
  std::vector<Json> cases;
  for (const Json& c : file.at("cases")) cases.push_back(c);
  if (cases.empty()) throw std::runtime_error(path + " has no cases");
  return cases;
}

/// A member by reference, or null (which iterates as empty) when there is none.
inline const Json& member(const Json& j, const char* name) {
  static const Json none;
  return j.contains(name) ? j.at(name) : none;
}
/// 64-bit values are decimal strings in the vectors; small ones may be numbers.
inline std::uint64_t u64(const Json& j) {
  return j.is_string() ? std::stoull(j.get<std::string>()) : j.get<std::uint64_t>();
}
inline std::vector<std::uint64_t> u64_list(const Json& j) {
  std::vector<std::uint64_t> out;
  for (const Json& v : j) out.push_back(u64(v));
  return out;
}
/// 1, 2, ..., n.
inline std::vector<std::uint32_t> counting_tokens(std::size_t n) {
  std::vector<std::uint32_t> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<std::uint32_t>(i + 1);
  return tokens;
}

}  // namespace routesim::test
