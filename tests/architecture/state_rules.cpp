#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/rules.h"

namespace routesim::architecture {
namespace {

bool is_product(const SourceFile& file) {
  if (!is_cpp(file)) return false;
  for (const char* room : {"base", "policies", "models", "workloads", "sim", "tools"})
    if (under(file.path, room)) return true;
  return false;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

using Edges = std::map<std::string, std::set<std::string>>;

Edges includes_between_folders(const std::vector<SourceFile>& files) {
  static const std::regex include("\n[ \t]*#include \"([^\"]+)\"");
  Edges edges;
  for (const SourceFile& file : files) {
    if (!is_product(file)) continue;
    const std::string text = "\n" + file.text;
    for (std::sregex_iterator i(text.begin(), text.end(), include), end; i != end; ++i) {
      const std::string here = folder_of(file.path), there = folder_of((*i)[1].str());
      if (here != there) edges[here].insert(there);
    }
  }
  return edges;
}

std::set<std::string> reachable_from(const Edges& edges, const std::string& start) {
  std::set<std::string> seen;
  std::vector<std::string> todo = {start};
  while (!todo.empty()) {
    const auto next = edges.find(todo.back());
    todo.pop_back();
    if (next == edges.end()) continue;
    for (const std::string& folder : next->second)
      if (seen.insert(folder).second) todo.push_back(folder);
  }
  return seen;
}

/// The statement without template arguments, so that commas and parentheses in it separate.
std::string without_angles(const std::string& statement) {
  std::string out;
  int depth = 0;
  for (const char c : statement) {
    if (c == '<' && !out.empty() && (std::isalnum(static_cast<unsigned char>(out.back())) != 0)) {
      ++depth;
    } else if (c == '>' && depth > 0) {
      --depth;
    } else if (depth == 0 || c == '<') {
      depth += c == '<' && depth > 0 ? 1 : 0;
      if (depth == 0) out += c;
    }
  }
  return out;
}

bool is_function(const std::string& statement) {
  const std::string head = statement.substr(0, statement.find_first_of("={"));
  return head.find('(') != std::string::npos;
}

/// How many data members a statement of a class body declares. They end in an underscore; members
/// of plain structs, which are records and no state, do not count.
std::size_t members_in(std::string statement) {
  static const std::regex noise(
      R"(::|\b(public|private|protected)\s*:|alignas\s*\([^)]*\)|\[\[[^\]]*\]\])");
  static const std::regex other(R"(^\s*(using|friend|static|typedef|template|return)\b)");
  static const std::regex member(R"(\w_\s*$)");
  statement = without_angles(std::regex_replace(statement, noise, " "));
  if (std::regex_search(statement, other) || is_function(statement)) return 0;
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < statement.size();) {
    const std::size_t end = std::min(statement.find(',', begin), statement.size());
    const std::string declarator = statement.substr(begin, end - begin);
    count += std::regex_search(declarator.substr(0, declarator.find_first_of("={[:")), member);
    begin = end + 1;
  }
  return count;
}

/// Walks over one file's braces and counts the members of every class body.
class MemberCounter {
 public:
  explicit MemberCounter(const std::string& code) : code_(code) {}

  std::map<std::string, std::size_t> count() {
    while (at_ < code_.size()) scope("");
    return counts_;
  }

 private:
  /// Reads up to the brace that closes the scope; `name` is empty outside classes.
  void scope(const std::string& name) {
    static const std::regex type(R"(\b(class|struct|union)\s+(?:\[\[\w+\]\]\s*)?([\w:]+))");
    std::string statement;
    while (at_ < code_.size()) {
      const char c = code_[at_++];
      std::smatch found;
      if (c == '}') return;
      if (c == ';') {
        if (!name.empty()) counts_[name] += members_in(statement);
        statement.clear();
      } else if (c != '{') {
        statement += c;
      } else if (statement.find("namespace") != std::string::npos) {
        statement.clear();
        scope("");
      } else if (statement.find("enum ") == std::string::npos &&
                 !is_function(without_angles(statement)) &&
                 std::regex_search(statement, found, type)) {
        scope((name.empty() ? "" : name + "::") + found[2].str());
        statement.clear();
      } else {
        skip_braces();
        // A blank or a comma: what follows one initialiser of a constructor.
        const std::size_t first = statement.find_first_not_of(" \n");
        if (first == std::string::npos || statement[first] == ',' ||
            is_function(without_angles(statement)))
          statement.clear();
        else
          statement += "{}";
      }
    }
  }

  void skip_braces() {
    for (int depth = 1; depth > 0 && at_ < code_.size(); ++at_)
      depth += code_[at_] == '{' ? 1 : code_[at_] == '}' ? -1 : 0;
  }

  const std::string& code_;
  std::size_t at_ = 0;
  std::map<std::string, std::size_t> counts_;
};

}  // namespace

std::set<std::string> folders_in_circles(const std::vector<SourceFile>& files) {
  const Edges edges = includes_between_folders(files);
  std::set<std::string> found;
  for (const auto& [folder, unused] : edges)
    if (reachable_from(edges, folder).contains(folder)) found.insert(folder);
  return found;
}

std::map<std::string, std::size_t> members_of_classes(const SourceFile& file) {
  if (!is_product(file)) return {};
  const std::string code = strip_comments_and_literals(file.text);
  return MemberCounter(std::regex_replace(code, std::regex("\n[ \t]*#[^\n]*"), "\n")).count();
}

std::map<std::string, std::set<std::string>> files_of_classes(
    const std::vector<SourceFile>& files) {
  static const std::regex definition(
      R"(^(?:[A-Za-z_][\w:<>,&* ]* )?[&*]?((?:\w+::)*[A-Z]\w*)::(?:~?\w+|operator\S+)\()");
  std::map<std::string, std::set<std::string>> found;
  for (const SourceFile& file : files) {
    if (!is_product(file) || is_header(file)) continue;
    for (const std::string& line : lines_of(strip_comments_and_literals(file.text))) {
      std::smatch match;
      if (line.find("::") == std::string::npos || line.find('(') == std::string::npos) continue;
      if (line.substr(0, line.find('(')).find('=') == std::string::npos && !line.ends_with(';') &&
          std::regex_search(line, match, definition))
        found[match[1].str()].insert(file.path);
    }
  }
  return found;
}

}  // namespace routesim::architecture
