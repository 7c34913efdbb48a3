#include "tools/cli/options.h"

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/value_semantic.hpp>

#include "base/diagnostic.h"
#include "base/printable.h"
#include "base/scalar_parse.h"

namespace routesim::tools {

namespace {

namespace po = boost::program_options;

constexpr char kPositional[] = "arguments";  // an empty name would mean "no positionals" to Boost

std::string long_name(const OptionSpec& option) {
  return option.name.substr(0, option.name.find(','));
}

po::options_description describe_options(const std::vector<OptionSpec>& options) {
  po::options_description description;
  for (const OptionSpec& option : options) {
    if (option.value_name.empty()) {
      description.add_options()(option.name.c_str(), option.help.c_str());
    } else if (!option.implicit_value.empty()) {
      description.add_options()(option.name.c_str(),
                                po::value<std::string>()->implicit_value(option.implicit_value),
                                option.help.c_str());
    } else {
      description.add_options()(option.name.c_str(), po::value<std::string>(), option.help.c_str());
    }
  }
  return description;
}

std::string unknown_option(const std::vector<OptionSpec>& options, const std::string& given) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const OptionSpec& option : options) names.push_back("--" + long_name(option));
  const std::string close = nearest(given, names);
  std::string message = "unknown option " + printable(given);
  if (!close.empty()) message += ", did you mean " + close + "?";
  return message;
}

/// Boost's own rules, minus its guessing of abbreviated names.
std::optional<std::vector<po::option>> parse(const std::vector<OptionSpec>& options,
                                             const std::vector<std::string>& arguments,
                                             std::string& error) {
  const po::options_description description = describe_options(options);
  po::positional_options_description positionals;
  positionals.add(kPositional, -1);
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  try {
    return po::command_line_parser(arguments)
        .options(description)
        .positional(positionals)
        .style(style)
        .run()
        .options;
  } catch (const po::unknown_option& e) {
    error = unknown_option(options, e.get_option_name());
  } catch (const po::error& e) {
    error = printable(e.what(), 200);
  }
  return std::nullopt;
}

}  // namespace

std::string OptionValues::get(const std::string& name, const std::string& fallback) const {
  const auto it = values.find(name);
  return it == values.end() || it->second.empty() ? fallback : it->second.front();
}

const std::vector<std::string>& OptionValues::all(const std::string& name) const {
  static const std::vector<std::string> kNone;
  const auto it = values.find(name);
  return it == values.end() ? kNone : it->second;
}

std::optional<OptionValues> parse_options(const std::vector<OptionSpec>& options,
                                          const PositionalSpec& positional,
                                          const std::vector<std::string>& arguments,
                                          std::string& error) {
  const auto parsed = parse(options, arguments, error);
  if (!parsed) return std::nullopt;
  OptionValues out;
  for (const po::option& option : *parsed) {
    if (option.position_key >= 0 || option.string_key.empty()) {
      out.positionals.insert(out.positionals.end(), option.value.begin(), option.value.end());
      continue;
    }
    std::string name = option.string_key;
    while (name.starts_with('-')) name.erase(0, 1);
    const auto spec = std::find_if(options.begin(), options.end(), [&](const OptionSpec& s) {
      return long_name(s) == name || s.name.substr(s.name.find(',') + 1) == name;
    });
    if (spec == options.end()) {
      error = unknown_option(options, "--" + name);
      return std::nullopt;
    }
    std::vector<std::string>& values = out.values[long_name(*spec)];
    if (!spec->repeatable && !values.empty()) {
      error = "--" + long_name(*spec) + " is given more than once";
      return std::nullopt;
    }
    values.push_back(option.value.empty() ? spec->implicit_value : option.value.front());
  }
  const std::size_t n = out.positionals.size();
  if (out.has("help")) return out;
  if (n < positional.min) {
    error = positional.name + " is missing";
    return std::nullopt;
  }
  if (n > positional.max) {
    error = "unexpected argument " + printable(out.positionals[positional.max]);
    return std::nullopt;
  }
  return out;
}

std::string options_help(const std::vector<OptionSpec>& options) {
  constexpr std::size_t kColumn = 28;
  std::string out;
  for (const OptionSpec& option : options) {
    std::string line = "  ";
    const std::size_t comma = option.name.find(',');
    if (comma != std::string::npos) line.append("-").append(option.name, comma + 1).append(", ");
    line.append("--").append(long_name(option));
    if (!option.implicit_value.empty()) {
      line.append("[=").append(option.value_name).append("]");
    } else if (!option.value_name.empty()) {
      line.append(" ").append(option.value_name);
    }
    if (line.size() + 2 > kColumn) {
      out += line + "\n";
      line.clear();
    }
    line.resize(kColumn, ' ');
    out += line + option.help + "\n";
  }
  return out;
}

std::optional<std::int64_t> whole_number(const OptionValues& options, const std::string& name,
                                         IntRange range, std::string& error) {
  if (!options.has(name)) return std::nullopt;
  const auto node = ConfigNode::make_scalar(options.get(name), ConfigNode::Style::kUntyped, {});
  const Parsed<std::int64_t> parsed = parse_integer(*node, range);
  if (!parsed.value) error = "--" + name + " " + parsed.message;
  return parsed.value;
}

}  // namespace routesim::tools
