// Texts as the blocks that an engine would hash. No tokenizer is at hand, so tokens are estimated
// from characters; which tokens two texts share follows from the texts themselves.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace routesim::workloads {

/// English prose through the Llama 3 and Qwen tokenizers has about this many characters per token.
inline constexpr double kCharactersPerToken = 4.3;
/// A guess for Chinese, Japanese and Korean: figures in circulation are 0.6 to 0.8 for Chinese and
/// 0.7 to 1 for the others (Llama 3), less with Qwen's tokenizer.
inline constexpr double kTokensPerWideCharacter = 0.7;
/// Tokens of a block of text: vLLM's default block size, and a divisor of all larger ones in use.
inline constexpr std::int64_t kTextBlockTokens = 16;

/// Cuts the text of one prompt into blocks of kTextBlockTokens estimated tokens. A block's id is a
/// hash of all text up to its end, so two prompts share ids exactly as far as their texts are
/// equal, in whole blocks. Counts in millionths of a token, in whole numbers: the same everywhere.
class TextBlocks {
 public:
  /// `scale`: real tokens per estimated token; 1 where nothing is known.
  explicit TextBlocks(double scale = 1);
  /// Adds UTF-8 text.
  void add(std::string_view text);
  /// Adds bytes that are known to be so many tokens, such as a token id or a role header.
  void add_tokens(std::string_view bytes, std::int64_t tokens);
  /// Estimated tokens so far, rounded up.
  std::int64_t tokens() const;
  /// The ids of the blocks; the last may be partial.
  std::vector<std::uint64_t> ids() const;

 private:
  void hash(char byte);
  void grow(std::int64_t millionths);

  std::int64_t narrow_;  // Millionths of a token per character.
  std::int64_t wide_;
  std::int64_t length_ = 0;  // Millionths of a token.
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
  std::vector<std::uint64_t> ids_;  // Of whole blocks.
};

}  // namespace routesim::workloads
