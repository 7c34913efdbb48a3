// Builds ConfigNode trees from yaml-cpp's event stream. yaml-cpp's own Node type is not used: it
// drops duplicate keys, ignores merge keys and has no place for a missing value.
#include "tools/ingest/tree/parse_config.h"

#include <sys/stat.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "base/config_node.h"
#include "base/text.h"

namespace routesim {

namespace {

/// Ends the parse after a limit was exceeded; its diagnostic is already recorded.
struct Abandoned {};

/// Guesses which encoding the file has instead.
std::string encoding_hint(std::string_view text, std::size_t bad) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") ||
      (bad < 2 && text.size() > 3 && (text[0] == '\0') != (text[1] == '\0')))
    return "it looks like UTF-16 or UTF-32: save it as UTF-8";
  if (text[bad] == '\0') return "it has a NUL byte";
  return "is this a text file?";
}

/// yaml-cpp 0.7 gives the escapes \N and \_ (next line, unbreakable space) as the single bytes of
/// Latin-1. Nothing else in a file of valid UTF-8 can put such a byte into a value.
std::string with_utf8_escapes(const std::string& value) {
  std::string out;
  for (std::size_t i = 0; i < value.size();) {
    const std::size_t length = utf8_length(value, i);
    if (length == 0) out += '\xC2';
    out.append(value, i, std::max<std::size_t>(length, 1));
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const TextPlacement& placement, Diagnostics& diagnostics,
              const ConfigLimits& limits, bool takes_several)
      : text_(text),
        placement_(placement),
        diagnostics_(diagnostics),
        limits_(limits),
        takes_several_(takes_several) {}

  /// The documents that say anything, in the order of the file.
  const std::vector<ConfigNode::Ptr>& documents() const { return documents_; }
  SourceLocation place(const YAML::Mark& mark) const {
    if (mark.is_null()) return {.file = placement_.file};
    return {.file = placement_.file,
            .line = mark.line + 1 + placement_.line_offset,
            .column = mark.column + 1 + placement_.column_offset};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    anchors_.clear();
    if (++started_ != 2 || takes_several_) return;
    if (char_at(0) == '{' && char_at(static_cast<std::size_t>(std::max(mark.pos, 0))) == '{') {
      diagnostics_.error(place(mark), "", "is JSON lines, and one document is read here",
                         "`routesim report` takes the rows of a sweep, `routesim init` a trace or "
                         "recorded sessions");
      throw Abandoned{};
    }
    diagnostics_.error(place(mark), "", "a second document starts here, one file holds only one",
                       "split the file, or check for content after a closing bracket");
    throw Abandoned{};
  }
  void OnDocumentEnd() override {
    if (root_ != nullptr && !root_->is_null()) documents_.push_back(root_);
    root_ = nullptr;
  }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const char first = char_at(scalar_start(mark));
    const bool written = first == '~' || first == 'n' || first == 'N';
    SourceLocation where = place(mark);
    // A missing value is reported by yaml-cpp at the next token; its key is the better place.
    if (!written && !stack_.empty() && stack_.back().has_key) where = stack_.back().key_where;
    finish(ConfigNode::make_null(where), anchor, false);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const SourceLocation where = place(mark);
    const bool refused = tag != "?" && tag != "!" && tag != "tag:yaml.org,2002:str";
    if (refused) refuse_tag(mark, tag);
    const bool plain = tag == "?" || refused;
    const char opening = char_at(scalar_start(mark));
    if (!plain && (opening == '|' || opening == '>')) {
      finish(block_scalar(mark, value), anchor, false);
      return;
    }
    if (!plain && !is_closed(scalar_start(mark))) {
      // yaml-cpp takes the end of the file for the missing quote.
      diagnostics_.error(where, "", "syntax error: this quote is never closed");
      throw Abandoned{};
    }
    const auto style = plain ? ConfigNode::Style::kPlain : ConfigNode::Style::kQuoted;
    const std::string text = opening == '"' ? with_utf8_escapes(value) : value;
    finish(ConfigNode::make_scalar(text, style, where), anchor, plain && value == "<<");
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) {
      diagnostics_.error(place(mark), "", "an alias may not stand inside the value it names");
      throw Abandoned{};
    }
    const ConfigNode& target = *it->second;
    count_nodes(mark, target.expanded_size());
    check_depth(mark, static_cast<int>(stack_.size()) + target.height());
    finish(it->second, 0, false);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, false);
  }
  void OnSequenceEnd() override {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    finish(ConfigNode::make_sequence(std::move(frame.items), frame.where), frame.anchor, false);
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, true);
  }
  void OnMapEnd() override {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    for (const ConfigNode::Ptr& source : frame.merges) merge_into(frame, *source);
    finish(ConfigNode::make_map(std::move(frame.members), frame.where), frame.anchor, false);
  }

 private:
  struct Frame {
    bool is_map = false;
    SourceLocation where;
    YAML::anchor_t anchor = 0;
    std::vector<ConfigNode::Ptr> items;
    std::vector<ConfigNode::Member> members;
    std::unordered_map<std::string, int> seen;  ///< Key to the line that set it first.
    std::vector<ConfigNode::Ptr> merges;
    bool has_key = false;
    bool key_is_merge = false;
    bool key_is_bad = false;
    std::string key;
    SourceLocation key_where;
  };

  char char_at(std::size_t pos) const { return pos < text_.size() ? text_[pos] : '\0'; }

  /// Offset of a scalar's own text: behind its anchor and tag, where yaml-cpp's mark stands.
  std::size_t scalar_start(const YAML::Mark& mark) const {
    std::size_t pos = mark.pos < 0 ? text_.size() : static_cast<std::size_t>(mark.pos);
    while (char_at(pos) == '&' || char_at(pos) == '!') {
      while (pos < text_.size() && text_[pos] != ' ' && text_[pos] != '\n') ++pos;
      while (char_at(pos) == ' ' || char_at(pos) == '\n') ++pos;
    }
    return pos;
  }

  /// Whether the quoted scalar that starts here has its closing quote.
  bool is_closed(std::size_t pos) const {
    const char quote = char_at(pos);
    if (quote != '"' && quote != '\'') return true;
    for (++pos; pos < text_.size(); ++pos) {
      if (quote == '"' && text_[pos] == '\\') {
        ++pos;
      } else if (text_[pos] == quote) {
        if (quote == '"' || char_at(pos + 1) != quote) return true;
        ++pos;
      }
    }
    return false;
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    diagnostics_.error(place(mark), "", "type tags are not supported (got " + printable(tag) + ")",
                       "remove the tag");
  }

  ConfigNode::Ptr block_scalar(const YAML::Mark& mark, const std::string& value) const {
    const SourceLocation where = place(mark);
    // Folded text has lost its line structure, so only a literal block maps back line by line.
    if (char_at(scalar_start(mark)) != '|')
      return ConfigNode::make_scalar(value, ConfigNode::Style::kBlock, where);
    std::size_t source = text_.find('\n', scalar_start(mark));
    std::size_t content = 0;
    int indent = 0;
    while (source != std::string_view::npos && content < value.size()) {
      const std::size_t source_end = std::min(text_.find('\n', source + 1), text_.size());
      const std::size_t content_end = std::min(value.find('\n', content), value.size());
      if (content_end > content) {
        std::size_t length = source_end - source - 1;
        if (length > 0 && text_[source_end - 1] == '\r') --length;
        if (length > content_end - content)
          indent = static_cast<int>(length - (content_end - content));
        break;
      }
      source = source_end < text_.size() ? source_end : std::string_view::npos;
      content = content_end + 1;
    }
    const auto lines_before =
        std::count(text_.begin() + mark.pos,
                   text_.begin() + static_cast<std::ptrdiff_t>(scalar_start(mark)), '\n');
    const int first_line = where.line + static_cast<int>(lines_before) + 1;
    return ConfigNode::make_block(value, where, first_line, indent + placement_.column_offset);
  }

  void count_nodes(const YAML::Mark& mark, std::size_t n) {
    nodes_ += n;
    if (nodes_ <= limits_.max_nodes) return;
    diagnostics_.error(place(mark), "",
                       "more than " + std::to_string(limits_.max_nodes) +
                           " values (aliases count as often as they are used)");
    throw Abandoned{};
  }

  void check_depth(const YAML::Mark& mark, int depth) {
    if (depth <= limits_.max_depth) return;
    diagnostics_.error(place(mark), "",
                       "nested deeper than " + std::to_string(limits_.max_depth) + " levels");
    throw Abandoned{};
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, bool is_map) {
    if (tag != "?" && tag != "!" && !tag.empty()) refuse_tag(mark, tag);
    check_depth(mark, static_cast<int>(stack_.size()) + 1);
    Frame frame;
    frame.is_map = is_map;
    frame.where = place(mark);
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }

  /// A value is complete: it becomes the root, an element, a key or a member.
  void finish(const ConfigNode::Ptr& node, YAML::anchor_t anchor, bool is_merge_key) {
    if (++nodes_ > limits_.max_nodes) count_nodes(YAML::Mark::null_mark(), 0);
    if (anchor != 0) anchors_[anchor] = node;
    if (stack_.empty()) {
      root_ = node;
      return;
    }
    Frame& frame = stack_.back();
    if (!frame.is_map) {
      frame.items.push_back(node);
    } else if (!frame.has_key) {
      take_key(frame, *node, is_merge_key);
    } else {
      frame.has_key = false;
      if (frame.key_is_merge) {
        add_merge(frame, node);
      } else if (!frame.key_is_bad) {
        frame.members.push_back({frame.key, frame.key_where, node});
      }
    }
  }

  void take_key(Frame& frame, const ConfigNode& node, bool is_merge_key) {
    frame.has_key = true;
    frame.key_is_merge = is_merge_key;
    frame.key_is_bad = false;
    frame.key_where = node.where();
    if (is_merge_key) return;
    if (!node.is_scalar()) {
      frame.key_is_bad = true;
      diagnostics_.error(node.where(), "", "a key must be text",
                         "put quotes around it, or check the indentation");
      return;
    }
    frame.key = node.text();
    const auto [first, is_new] = frame.seen.emplace(frame.key, node.where().line);
    if (is_new) return;
    frame.key_is_bad = true;
    diagnostics_.error(node.where(), "",
                       "duplicate key " + in_quotes(frame.key) + ", first set on line " +
                           std::to_string(first->second),
                       "keep one of the two");
  }

  void add_merge(Frame& frame, const ConfigNode::Ptr& node) {
    if (node->is_map()) {
      frame.merges.push_back(node);
      return;
    }
    bool all_maps = node->is_sequence();
    for (const ConfigNode::Ptr& item : node->items()) all_maps = all_maps && item->is_map();
    if (all_maps) {
      frame.merges.insert(frame.merges.end(), node->items().begin(), node->items().end());
    } else {
      diagnostics_.error(frame.key_where, "", "a merge key '<<' takes a map or a list of maps");
    }
  }

  /// Keys written in the map itself win over merged ones, earlier sources over later ones.
  static void merge_into(Frame& frame, const ConfigNode& source) {
    for (const ConfigNode::Member& member : source.members())
      if (frame.seen.emplace(member.key, member.key_where.line).second)
        frame.members.push_back(member);
  }

  std::string_view text_;
  const TextPlacement& placement_;
  Diagnostics& diagnostics_;
  ConfigLimits limits_;
  bool takes_several_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, ConfigNode::Ptr> anchors_;
  ConfigNode::Ptr root_;
  std::vector<ConfigNode::Ptr> documents_;
  std::size_t nodes_ = 0;
  int started_ = 0;
};

bool check_text(std::string_view text, const TextPlacement& placement, Diagnostics& diagnostics,
                const ConfigLimits& limits) {
  if (text.size() > limits.max_bytes) {
    diagnostics.error(
        {.file = placement.file}, "",
        "larger than the limit of " + std::to_string(limits.max_bytes >> 20) + " MiB");
    return false;
  }
  const std::size_t bad = first_not_utf8(text);
  if (bad == std::string_view::npos) return true;
  int line = 1;
  std::size_t start = 0;
  for (std::size_t i = 0; i < bad; ++i)
    if (text[i] == '\n') {
      ++line;
      start = i + 1;
    }
  diagnostics.error({.file = placement.file,
                     .line = line + placement.line_offset,
                     .column = static_cast<int>(bad - start) + 1 + placement.column_offset},
                    "", "not valid UTF-8 text", encoding_hint(text, bad));
  return false;
}

/// The most frequent cause of a syntax error.
std::string syntax_hint(std::string_view text, const YAML::Mark& mark, std::string_view message) {
  if (mark.is_null()) return {};
  std::size_t start = 0;
  for (int line = 0; line < mark.line && start != std::string_view::npos; ++line)
    start = text.find('\n', start) + 1;
  const std::string_view line = text.substr(std::min(start, text.size()));
  const std::size_t first = line.find_first_not_of(' ');
  if (first != std::string_view::npos && line[first] == '\t') return "indent with spaces, not tabs";
  if (message == "illegal map value") return "text that holds a colon and a space needs quotes";
  if (message.find("end of") != std::string_view::npos)
    return "check the brackets and the indentation above";
  return {};
}

/// yaml-cpp's message; names the missing anchor with all versions of yaml-cpp.
std::string syntax_message(std::string_view text, const YAML::Exception& e) {
  constexpr std::string_view kUnknown = "the referenced anchor is not defined";
  if (!std::string_view(e.msg).starts_with(kUnknown)) return printable(e.msg, 120);
  const auto at = static_cast<std::size_t>(std::max(e.mark.pos, 0));
  const std::string_view alias = text.substr(std::min(at, text.size()));
  const std::string_view name = alias.substr(0, alias.find_first_of(" \t\r\n,]}"));
  return std::string(kUnknown) + (name.starts_with('*') ? ": " + printable(name, 80) : "");
}

/// The documents of a text that say anything; nothing after a syntax error or an exceeded limit.
std::optional<std::vector<ConfigNode::Ptr>> parse_documents(const std::string& text,
                                                            const TextPlacement& placement,
                                                            Diagnostics& diagnostics,
                                                            const ConfigLimits& limits,
                                                            bool takes_several) {
  std::string_view body = text;
  if (body.substr(0, 3) == "\xEF\xBB\xBF") body.remove_prefix(3);
  if (!check_text(body, placement, diagnostics, limits)) return std::nullopt;
  TreeBuilder builder(body, placement, diagnostics, limits, takes_several);
  try {
    std::istringstream stream{std::string(body)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Abandoned&) {
    return std::nullopt;
  } catch (const YAML::Exception& e) {
    diagnostics.error(builder.place(e.mark), "", "syntax error: " + syntax_message(body, e),
                      syntax_hint(body, e.mark, e.msg));
    return std::nullopt;
  }
  return builder.documents();
}

/// The null that a text without any value holds, at its begin.
ConfigNode::Ptr nothing(const TextPlacement& placement) {
  return ConfigNode::make_null({.file = placement.file,
                                .line = 1 + placement.line_offset,
                                .column = 1 + placement.column_offset});
}

}  // namespace

ConfigNode::Ptr parse_config(const std::string& text, const TextPlacement& placement,
                             Diagnostics& diagnostics, const ConfigLimits& limits) {
  const auto documents = parse_documents(text, placement, diagnostics, limits, false);
  if (!documents) return nullptr;
  return documents->empty() ? nothing(placement) : documents->front();
}

ConfigNode::Ptr parse_manifest(const std::string& text, const TextPlacement& placement,
                               Diagnostics& diagnostics, const ConfigLimits& limits) {
  const auto documents = parse_documents(text, placement, diagnostics, limits, true);
  if (!documents) return nullptr;
  if (documents->empty()) return nothing(placement);
  if (documents->size() == 1) return documents->front();
  const auto is_object = [](const ConfigNode::Ptr& d) { return d->find("kind") != nullptr; };
  if (!std::all_of(documents->begin(), documents->end(), is_object))
    return parse_config(text, placement, diagnostics, limits);  // Says where the second starts.
  const SourceLocation where{.file = placement.file, .line = 1, .column = 1};
  const auto plain = [&](const char* word) {
    return ConfigNode::make_scalar(word, ConfigNode::Style::kPlain, where);
  };
  return ConfigNode::make_map({{"apiVersion", where, plain("v1")},
                               {"kind", where, plain("List")},
                               {"items", where, ConfigNode::make_sequence(*documents, where)}},
                              where);
}

bool read_text_file(const std::string& path, const SourceLocation& asked_from,
                    const std::string& key_path, std::size_t max_bytes, std::string& text,
                    Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& why, const std::string& hint) {
    diagnostics.error(asked_from, key_path, why, hint);
    return false;
  };
  const std::string shown = printable(path, 200);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return fail("cannot open " + shown + ": " + std::strerror(errno),
                key_path.empty() ? "" : "paths inside a file are relative to that file");
  if (S_ISDIR(info.st_mode)) return fail("cannot read " + shown + ": it is a directory", "");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr) return fail("cannot open " + shown + ": " + std::strerror(errno), "");
  text.clear();
  std::string chunk(1U << 16, '\0');
  while (true) {
    const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), file.get());
    text.append(chunk, 0, n);
    if (text.size() > max_bytes)
      return fail(
          shown + " is larger than the limit of " + std::to_string(max_bytes >> 20) + " MiB", "");
    if (n < chunk.size()) break;
  }
  if (std::ferror(file.get()) != 0)
    return fail("cannot read " + shown + ": " + std::strerror(errno), "");
  return true;
}

ConfigNode::Ptr read_config_file(const std::string& path, Diagnostics& diagnostics,
                                 const ConfigLimits& limits) {
  std::string text;
  if (!read_text_file(path, {.file = path}, "", limits.max_bytes, text, diagnostics))
    return nullptr;
  return parse_config(text, {.file = path}, diagnostics, limits);
}

ConfigNode::Ptr parse_embedded(const ConfigNode& scalar, Diagnostics& diagnostics,
                               const ConfigLimits& limits) {
  TextPlacement placement{.file = scalar.where().file};
  if (scalar.block_first_line() > 0) {
    placement.line_offset = scalar.block_first_line() - 1;
    placement.column_offset = scalar.block_indent();
  } else {
    placement.line_offset = std::max(0, scalar.where().line - 1);
  }
  return parse_config(scalar.text(), placement, diagnostics, limits);
}

}  // namespace routesim
