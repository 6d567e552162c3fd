// SPDX-License-Identifier: BSD-3-Clause
// What a rank is doing, in memory that the ranks of its node share.
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
#include <tuple>

#include "base/detail/process_identity.hpp"
#include "rankmesh/base/call_descriptor.hpp"
#include "rankmesh/base/published_text.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::detail {

using record::Presence;

/// The beginning of a name, as words that a rank can publish without formatting.
class ShortName {
 public:
  static constexpr std::size_t bytes = 32;  ///< With a zero byte.
  using Words = std::array<std::uint64_t, bytes / 8>;

  ShortName() = default;
  explicit ShortName(const Words& words) : words_{words} {}
  /// @param name  A longer name is cut.
  explicit ShortName(std::string_view name) {
    std::memcpy(words_.data(), name.data(), std::min(name.size(), bytes - 1));
  }
  [[nodiscard]] const Words& words() const { return words_; }
  [[nodiscard]] std::string text() const {
    const auto* const text = reinterpret_cast<const char*>(words_.data());
    return {text, ::strnlen(text, bytes)};
  }

 private:
  Words words_{};
};

/// The call that MPI, or a transport of the program, carries now. The rank writes it without a
/// clock and without formatting.
class CurrentCall {
 public:
  struct Value {
    ShortName group;
    CallDescriptor descriptor{};
    std::uint64_t number = 0;  ///< Of a collective in its group.
  };

  void enter(const ShortName& group, const CallDescriptor& descriptor,
             std::uint64_t number) noexcept {
    // A reader of the last call must see its end before it sees parts of this one.
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < group_.size(); ++i)
      group_[i].store(group.words()[i], std::memory_order_relaxed);
    kind_.store(descriptor.kind, std::memory_order_relaxed);
    detail_.store(descriptor.detail, std::memory_order_relaxed);
    number_.store(number, std::memory_order_relaxed);
    sequence_.store(sequence() + 1, std::memory_order_release);
  }
  void leave() noexcept { sequence_.store(sequence() + 1, std::memory_order_release); }

  /// Returns a number that is odd inside a call, and different in each call.
  [[nodiscard]] std::uint64_t sequence() const noexcept {
    return sequence_.load(std::memory_order_relaxed);
  }
  /// Returns the call with this sequence; nothing if the rank has left it.
  [[nodiscard]] std::optional<Value> read(std::uint64_t sequence) const {
    if (sequence_.load(std::memory_order_acquire) != sequence) return std::nullopt;
    ShortName::Words group;
    for (std::size_t i = 0; i < group.size(); ++i) group[i] = group_[i];
    const Value value{ShortName{group}, {kind_, detail_}, number_};
    if (sequence_.load(std::memory_order_acquire) != sequence) return std::nullopt;
    return value;
  }

 private:
  std::atomic<std::uint64_t> sequence_{0};
  std::array<std::atomic<std::uint64_t>, ShortName::Words{}.size()> group_{};
  std::atomic<std::uint64_t> kind_{0}, detail_{0}, number_{0};
};

/// The ranks without which the wait of a rank cannot end.
class Needs {
 public:
  static constexpr std::size_t most_ranks = 512;
  using Words = std::array<std::uint64_t, most_ranks / 64 + 1>;

  Needs() = default;
  explicit Needs(const Words& words) : words_{words} {}
  /// @param rank  Of the board. Ranks from most_ranks on are left out.
  void add(std::size_t rank) {
    if (rank < most_ranks) words_[rank / 64] |= std::uint64_t{1} << rank % 64;
  }
  [[nodiscard]] bool has(std::size_t rank) const {
    return rank < most_ranks && (words_[rank / 64] >> rank % 64 & 1) != 0;
  }
  /// Whether the wait belongs to the mesh of the board.
  void set_own_mesh() { words_.back() = 1; }
  [[nodiscard]] bool is_of_own_mesh() const { return words_.back() != 0; }
  [[nodiscard]] const Words& words() const { return words_; }

 private:
  Words words_{};
};

/// Needs that their rank determines again and again while it waits.
class PublishedNeeds {
 public:
  struct Value {
    Needs needs;
    std::uint64_t version = 0;  ///< It changes with each change of the needs.
    std::uint64_t checks = 0;   ///< How often the rank has found the needs unchanged.
  };

  /// Publishes needs that the rank has just determined.
  void write(const Needs& needs) {
    if (const auto last = words_.read(); last && last->words == needs.words())
      checks_.fetch_add(1, std::memory_order_release);
    else
      words_.write(needs.words());
  }
  [[nodiscard]] std::optional<Value> read() const {
    const auto value = words_.read();
    if (!value) return std::nullopt;
    return Value{Needs{value->words}, value->version, checks_.load(std::memory_order_acquire)};
  }

 private:
  PublishedWords<std::tuple_size_v<Needs::Words>> words_;
  std::atomic<std::uint64_t> checks_{0};
};

/// What the device of a rank has to do; see DeviceWatch.
struct PublishedDeviceWork {
  static constexpr std::size_t places = 64;
  /// An open group of the rank, and the number of the latest collective that the rank has issued.
  struct Latest {
    std::atomic<std::uint64_t> group{0};  ///< A hash of the group's identity; 0: not used.
    std::atomic<std::uint64_t> number{0};
    PublishedWords<ShortName::Words{}.size()> name;
  };
  std::array<Latest, places> latest{};
  std::atomic<std::uint32_t> groups_without_place{0};
  /// The oldest operation that is not known to have ended: its place plus one in the highest byte,
  /// then its number, which messages do not have. 0: none.
  std::atomic<std::uint64_t> oldest{0};
  PublishedTextOf<1016> stuck;  ///< The operation that this rank has found stuck; or empty.
};

/// The area of one rank in the memory of its node. Only this rank writes it, apart from the
/// verdicts of others. Zeroed memory is the area of a rank that has not come yet. What a rank has
/// left here remains after its end.
struct alignas(128) RankArea {
  ProcessIdentity process;  ///< Valid once `has_come`.
  std::atomic<bool> has_come{false};
  std::atomic<bool> has_lock{false};  ///< Whether the rank could take its lock.
  std::atomic<Presence> presence{Presence::open};
  std::atomic<std::uint64_t> closes{0};  ///< How often the rank has begun to close the mesh.
  PublishedReason reason;                ///< Why an exception destroyed the mesh.
  alignas(64) CurrentCall call;
  alignas(64) PublishedText wait;    ///< Empty if the rank does not wait.
  alignas(64) PublishedNeeds needs;  ///< For whom the rank waits.
  alignas(64) PublishedDeviceWork device;
  PublishedTextOf<2040> found;  ///< The circle that this rank has found, for the others in it.

  // The verdicts of others.
  std::atomic<bool> is_end_reported{false};  ///< Whether some rank has reported its abnormal end.
  /// The version of `needs` of a wait that is part of a circle, and the slot of the rank that has
  /// found it. 0: none.
  std::atomic<std::uint64_t> circle_version{0};
  std::atomic<std::uint64_t> circle_finder{0};

  // See LossWatch. Others write the first three, too.
  std::atomic<bool> is_late{false};         ///< Whether others have waited for it for too long.
  std::atomic<std::uint64_t> fate{0};       ///< Whether the rank is lost, as its node has decided.
  std::atomic<std::uint64_t> committed{0};  ///< The step that the rank has committed.
  std::atomic<std::uint64_t> commit{0};     ///< The number and the step of its last commit.
  std::atomic<std::uint64_t> met{0};        ///< Where the rank waits for the other survivors.
  std::atomic<std::uint64_t> stop{0};       ///< Its first commit that asks all to stop; 0: none.
  std::atomic<std::int64_t> waited{0};      ///< When it has waited last, or opened the mesh.

  [[nodiscard]] bool is_open() const { return has_come && presence == Presence::open; }
  /// Returns the process of the rank; of no process before the rank has come.
  [[nodiscard]] ProcessIdentity identity() const { return has_come ? process : ProcessIdentity{}; }
};

}  // namespace rankmesh::detail
