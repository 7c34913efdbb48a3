#include "workloads/conversations/conversation_data.h"

#include <cmath>
#include <utility>

#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

/// The length and identity of a text.
Message describe_text(const std::string& text, double characters_per_token) {
  Message message;
  message.human = true;
  message.characters = count_code_points(text);
  const std::int64_t wide = count_wide_code_points(text);
  message.tokens = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(message.characters - wide) / characters_per_token +
                static_cast<double>(wide) * kTokensPerWideCharacter));
  message.text = hash_bytes(text);
  return message;
}

class ShareGptReader final : public ConversationReader {
 public:
  ShareGptReader(std::unique_ptr<std::istream> in, std::string file, double characters_per_token)
      : in_(std::move(in)),
        file_(std::move(file)),
        characters_per_token_(characters_per_token),
        json_(*in_) {}

  bool next(Conversation& conversation) override {
    conversation.messages.clear();
    if (over_) return false;
    if (record_ == 0 && !json_.begin_array()) return stop();
    if (!json_.next_element()) {
      // The array is over: nothing may follow.
      if (json_.ok() && !json_.at_end()) json_.fail("text behind the end of the array");
      return stop();
    }
    conversation.record = ++record_;
    return read_record(conversation) || stop();
  }
  const Diagnostics& diagnostics() const override { return diagnostics_; }

 private:
  bool stop() {
    over_ = true;
    if (!json_.ok())
      diagnostics_.error({file_, static_cast<int>(json_.line()), json_.column()},
                         record_ == 0 ? std::string() : "record " + std::to_string(record_),
                         json_.error());
    return false;
  }

  bool read_record(Conversation& conversation) {
    bool found = false;
    const bool good = json_.members([&](const std::string& key) {
      if (key != "conversations") return json_.skip();
      if (std::exchange(found, true))
        return json_.fail("the key `conversations` stands here twice");
      return json_.elements([&] { return read_message(conversation.messages.emplace_back()); });
    });
    return good && (found || json_.fail("a record without `conversations`"));
  }

  bool read_message(Message& message) {
    bool from = false, value = false, human = false;
    std::int64_t tokens = -1;
    const bool good = json_.members([&](const std::string& key) {
      if (key == "num_tokens") return json_.read_integer(tokens);
      if (key != "from" && key != "value") return json_.skip();
      if (std::exchange(key == "from" ? from : value, true))
        return json_.fail("the key `" + key + "` stands here twice");
      if (!json_.read_string(text_)) return false;
      if (key == "from")
        human = text_ == "human" || text_ == "user";
      else
        message = describe_text(text_, characters_per_token_);
      return true;
    });
    message.human = human;
    if (tokens >= 0) message.tokens = tokens;
    return good && ((from && value) || json_.fail("a message without `from` or `value`"));
  }

  std::unique_ptr<std::istream> in_;
  std::string file_;
  double characters_per_token_;
  JsonScanner json_;
  Diagnostics diagnostics_;
  std::string text_;
  std::int64_t record_ = 0;
  bool over_ = false;
};

class PromptReader final : public ConversationReader {
 public:
  PromptReader(std::unique_ptr<std::istream> in, std::string file, double characters_per_token)
      : in_(std::move(in)),
        file_(std::move(file)),
        characters_per_token_(characters_per_token),
        lines_(*in_) {}

  bool next(Conversation& conversation) override {
    conversation.messages.clear();
    if (over_ || !lines_.next(line_)) {
      if (lines_.too_long()) fail("the line is longer than 16 MiB", 1);
      over_ = true;
      return false;
    }
    conversation.record = ++record_;
    JsonScanner json(line_, lines_.line_number());
    std::int64_t output = 0;
    bool prompt = false, has_output = false;
    (void)json.document([&](const std::string& key) {
      if (key != "prompt" && key != "output_tokens") return json.skip();
      const int column = json.value_column();
      if (std::exchange(key == "prompt" ? prompt : has_output, true))
        return json.fail_at("the key `" + key + "` stands here twice", column);
      if (key == "output_tokens")
        return json.read_integer(output) &&
               (output >= 0 || json.fail_at("output_tokens must not be negative", column));
      return json.read_string(text_) &&
             (!text_.empty() || json.fail_at("the prompt is empty, which vLLM refuses", column));
    });
    if (json.ok() && !prompt) json.fail("a row without `prompt`");
    if (!json.ok()) return fail(json.error(), json.column());
    conversation.messages.push_back(describe_text(text_, characters_per_token_));
    if (output > 0) {
      Message answer;
      answer.tokens = output;
      conversation.messages.push_back(answer);
    }
    return true;
  }
  const Diagnostics& diagnostics() const override { return diagnostics_; }

 private:
  bool fail(const std::string& message, int column) {
    over_ = true;
    diagnostics_.error({file_, static_cast<int>(lines_.line_number()), column}, "", message);
    return false;
  }

  std::unique_ptr<std::istream> in_;
  std::string file_;
  double characters_per_token_;
  LineReader lines_;
  Diagnostics diagnostics_;
  std::string line_, text_;
  std::int64_t record_ = 0;
  bool over_ = false;
};

}  // namespace

std::unique_ptr<ConversationReader> make_sharegpt_reader(std::unique_ptr<std::istream> in,
                                                         std::string file,
                                                         double characters_per_token) {
  return std::make_unique<ShareGptReader>(std::move(in), std::move(file), characters_per_token);
}

std::unique_ptr<ConversationReader> make_prompt_reader(std::unique_ptr<std::istream> in,
                                                       std::string file,
                                                       double characters_per_token) {
  return std::make_unique<PromptReader>(std::move(in), std::move(file), characters_per_token);
}

}  // namespace routesim::workloads
