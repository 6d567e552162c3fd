// SPDX-License-Identifier: BSD-3-Clause
// Words and texts in memory that one process writes and others read.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace rankmesh {

/// Words that one process writes and others read at any time. If the words are written while a
/// reader reads them, the reader reads again. It therefore never gets parts of two values. One
/// thread writes at a time.
template <std::size_t count>
class PublishedWords {
 public:
  /// What is published.
  using Words = std::array<std::uint64_t, count>;
  /// What a reader gets.
  struct Value {
    Words words;                ///< The words.
    std::uint64_t version = 0;  ///< Another number after each write.
  };

  /// Publishes words. Does not block.
  void write(const Words& words) {
    const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < count; ++i) words_[i].store(words[i], std::memory_order_relaxed);
    sequence_.store(sequence + 2, std::memory_order_release);
  }
  /// Returns the words. Returns nothing if the writer has ended or was stopped in the middle of a
  /// write.
  [[nodiscard]] std::optional<Value> read() const {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      Value value;
      value.version = sequence_.load(std::memory_order_acquire);
      if (value.version % 2 != 0) continue;
      for (std::size_t i = 0; i < count; ++i)
        value.words[i] = words_[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (sequence_.load(std::memory_order_relaxed) == value.version) return value;
    }
    return std::nullopt;
  }

 private:
  std::atomic<std::uint64_t> sequence_{0};  // odd during a write
  std::array<std::atomic<std::uint64_t>, count> words_{};
};

/// A text with two numbers that one process writes and others read at any time, as PublishedWords.
template <std::size_t text_capacity>
class PublishedTextOf {
 public:
  /// The number of bytes of the text, with a zero byte.
  static constexpr std::size_t capacity = text_capacity;
  /// The text and the numbers that a reader gets.
  struct Value {
    std::uint64_t key = 0;   ///< A number that the writer chooses, such as the key of a wait.
    std::int64_t since = 0;  ///< A time that the writer chooses, in nanoseconds.
    std::string text;        ///< The text.
  };

  /// Publishes a text with its two numbers. A text that is too long is cut, and then ends with
  /// three dots. Does not block.
  void write(std::uint64_t key, std::int64_t since, std::string_view text) {
    typename Published::Words words{key, static_cast<std::uint64_t>(since)};
    auto* const to = reinterpret_cast<char*>(&words[2]);
    std::memcpy(to, text.data(), std::min(text.size(), capacity - 1));
    if (text.size() >= capacity) std::memcpy(to + capacity - 4, "...", 3);
    words_.write(words);
  }
  /// Publishes an empty text.
  void clear() { write(0, 0, {}); }

  /// Returns the text and its numbers. Returns nothing if the text is empty, or if the writer has
  /// ended or was stopped in the middle of a write.
  [[nodiscard]] std::optional<Value> read() const {
    const auto published = words_.read();
    if (!published) return std::nullopt;
    const auto& words = published->words;
    const auto* const text = reinterpret_cast<const char*>(&words[2]);
    if (*text == '\0') return std::nullopt;
    return Value{words[0], static_cast<std::int64_t>(words[1]),
                 std::string{text, ::strnlen(text, capacity)}};
  }

 private:
  using Published = PublishedWords<2 + text_capacity / 8>;
  Published words_;
};

using PublishedText = PublishedTextOf<232>;
/// Why an exception destroyed a mesh: the message of the error, which may name many ranks.
using PublishedReason = PublishedTextOf<1688>;

}  // namespace rankmesh
