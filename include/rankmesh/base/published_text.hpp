// SPDX-License-Identifier: BSD-3-Clause
// A text in memory that one process writes and others read.
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

/// A text with two numbers that one process writes and others read at any time. If the text is
/// written while a reader reads it, the reader reads again. It therefore never gets parts of two
/// texts. One thread writes at a time.
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

  /// Publishes a text with its two numbers. A text that is too long is cut. Does not block.
  void write(std::uint64_t key, std::int64_t since, std::string_view text) {
    std::array<char, capacity> bytes{};
    std::memcpy(bytes.data(), text.data(), std::min(text.size(), capacity - 1));
    const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    words_[0].store(key, std::memory_order_relaxed);
    words_[1].store(static_cast<std::uint64_t>(since), std::memory_order_relaxed);
    for (std::size_t i = 0; i < capacity / 8; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i * 8, 8);
      words_[2 + i].store(word, std::memory_order_relaxed);
    }
    sequence_.store(sequence + 2, std::memory_order_release);
  }
  /// Publishes an empty text.
  void clear() { write(0, 0, {}); }

  /// Returns the text and its numbers. Returns nothing if the text is empty, or if the writer has
  /// ended or was stopped in the middle of a write.
  [[nodiscard]] std::optional<Value> read() const {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const std::uint64_t before = sequence_.load(std::memory_order_acquire);
      if (before % 2 != 0) continue;
      Value value{words_[0].load(std::memory_order_relaxed),
                  static_cast<std::int64_t>(words_[1].load(std::memory_order_relaxed)),
                  {}};
      std::array<char, capacity + 1> bytes{};
      for (std::size_t i = 0; i < capacity / 8; ++i) {
        const std::uint64_t word = words_[2 + i].load(std::memory_order_relaxed);
        std::memcpy(bytes.data() + i * 8, &word, 8);
      }
      std::atomic_thread_fence(std::memory_order_acquire);
      if (sequence_.load(std::memory_order_relaxed) != before) continue;
      value.text = bytes.data();
      if (value.text.empty()) return std::nullopt;
      return value;
    }
    return std::nullopt;
  }

 private:
  std::atomic<std::uint64_t> sequence_{0};  // odd during a write
  std::array<std::atomic<std::uint64_t>, 2 + capacity / 8> words_{};
};

using PublishedText = PublishedTextOf<232>;

}  // namespace rankmesh
