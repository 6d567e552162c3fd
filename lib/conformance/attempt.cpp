// SPDX-License-Identifier: BSD-3-Clause
#include "detail/attempt.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/base/narrow_float.hpp"

namespace rankmesh::conformance {

namespace {

constexpr std::byte untouched{0x5a};
constexpr std::int64_t guard = 64;  // bytes behind the output

using Counts = std::vector<std::int64_t>;

// Returns the blocks of a call: sizes[a][b] is what member a has for member b.
std::vector<Counts> block_sizes(const TableEntry& entry, std::int64_t members) {
  const auto n = static_cast<std::size_t>(members);
  std::vector<Counts> result(n, Counts(n, entry.count));
  if (!entry.has_blocks) return result;
  std::mt19937 random{static_cast<unsigned>(entry.number)};
  for (Counts& row : result)
    for (std::int64_t& size : row)
      size = static_cast<std::int64_t>(random() % static_cast<unsigned>(2 * entry.count + 1));
  return result;
}

// Returns the sum of the first `members` sizes.
std::int64_t sum_of(const Counts& sizes, std::int64_t members) {
  return std::accumulate(sizes.begin(), sizes.begin() + members, std::int64_t{0});
}

std::string value_text(const std::byte* at, DataType type) {
  return visit(type, [&]<class T>(std::type_identity<T>) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    if constexpr (std::is_integral_v<T>)
      return fmt::format("{}", +value);
    else if constexpr (std::is_floating_point_v<T>)
      return fmt::format("{}", value);
    else
      return fmt::format("{}", static_cast<float>(value));
  });
}

}  // namespace

AttemptedCall::AttemptedCall(const TableEntry& entry, const Carrier& carrier,
                             const ReductionValues* values)
    : entry_{entry},
      values_{values},
      n_{carrier.members},
      self_{carrier.self},
      element_{static_cast<std::int64_t>(size_of(entry.type))} {
  call_.operation = entry.operation;
  call_.reduction = entry.op;
  const bool is_exchange = entry.operation == Operation::send_recv;
  call_.root = RankInGroup{entry.number % n_};
  if (is_exchange) {
    call_.destination = RankInGroup{(self_ + 1) % n_};
    call_.source = RankInGroup{(self_ + n_ - 1) % n_};
  }
  set_memory();
}

std::string AttemptedCall::text() const {
  const bool is_reduced = reduces(entry_.operation);
  return std::string{to_string(entry_.operation)} + (entry_.has_blocks ? "_v" : "") +
         to_string(entry_.form) + " of " +
         (entry_.has_blocks ? "blocks of up to " + std::to_string(2 * entry_.count)
                            : std::to_string(entry_.count)) +
         " x " + std::string{to_string(entry_.type)} +
         (is_reduced ? ", " + std::string{to_string(entry_.op)} : "") +
         (has_root(entry_.operation) ? ", root " + std::to_string(call_.root.value()) : "") +
         ", member " + std::to_string(self_) + " of " + std::to_string(n_);
}

bool AttemptedCall::is_wrong(std::int64_t element) const {
  const std::byte* const at = out_.data() + element * element_;
  if (is_reduced_here_) return values_->wrong(at, place_ + element, 1) > 0;
  return std::memcmp(at, expected_.data() + element * element_,
                     static_cast<std::size_t>(element_)) != 0;
}

std::string AttemptedCall::problem() const {
  const std::int64_t count = std::ssize(expected_) / element_;
  std::int64_t wrong = 0, first = -1, untouched_ones = 0;
  const bool is_equal =
      count == 0 || std::memcmp(out_.data(), expected_.data(), expected_.size()) == 0;
  for (std::int64_t i = 0; !is_equal && i < count; ++i) {
    if (!is_wrong(i)) continue;
    if (wrong++ == 0) first = i;
    const auto at = out_.begin() + i * element_;
    untouched_ones += std::all_of(at, at + element_, [](auto b) { return b == untouched; }) ? 1 : 0;
  }
  if (wrong > 0)
    return std::to_string(wrong) + " of " + std::to_string(count) +
           " elements of the result are wrong" +
           (untouched_ones == wrong ? ", because they were not written" : "") + "; the first is " +
           std::to_string(first) + ", which is " +
           value_text(out_.data() + first * element_, entry_.type) + " instead of " +
           value_text(expected_.data() + first * element_, entry_.type);
  if (std::any_of(out_.begin() + std::ssize(expected_), out_.end(),
                  [](std::byte b) { return b != untouched; }))
    return "memory behind the result was written";
  if (in_ != sent_) return "the input was changed";
  return "";
}

Bytes AttemptedCall::input(std::int64_t member, std::int64_t begin, std::int64_t count) const {
  Bytes result(static_cast<std::size_t>(count * element_));
  if (values_ != nullptr)
    repeat(values_->own, entry_.number + begin, result.data(), count, element_);
  else
    fill_moved(result.data(), member, begin * element_, count * element_, entry_.number);
  return result;
}

Bytes AttemptedCall::result(std::int64_t begin, std::int64_t count) {
  Bytes bytes(static_cast<std::size_t>(count * element_));
  place_ = entry_.number + begin;
  is_reduced_here_ = true;
  repeat(values_->result, place_, bytes.data(), count, element_);
  return bytes;
}

void AttemptedCall::pass(Bytes input, Bytes expected) {
  in_ = std::move(input);
  expected_ = std::move(expected);
  out_.assign(expected_.size(), untouched);
  set_in(in_.data(), std::ssize(in_) / element_);
}

void AttemptedCall::pass_in_place(const Bytes& input, std::int64_t at, Bytes expected) {
  expected_ = std::move(expected);
  out_.assign(expected_.size(), untouched);
  std::copy(input.begin(), input.end(), out_.begin() + at * element_);
  in_at_ = at;
  in_count_ = std::ssize(input) / element_;
}

void AttemptedCall::keep(std::int64_t count) {
  expected_.assign(static_cast<std::size_t>(entry_.number / n_ % 2 == 0 ? count * element_ : 0),
                   untouched);
  out_ = expected_;
}

void AttemptedCall::set_memory() {
  set_blocks();
  if (out_count_ < 0) out_count_ = std::ssize(out_) / element_;
  out_.resize(out_.size() + guard, untouched);
  call_.out = {out_.data() + out_at_ * element_, out_count_, entry_.type};
  if (in_at_ >= 0) set_in(out_.data() + in_at_ * element_, in_count_);
  sent_ = in_;
}

void AttemptedCall::set_blocks() {
  const auto sizes = block_sizes(entry_, n_);
  const Counts& first = sizes[0];
  const std::int64_t own = first[static_cast<std::size_t>(self_)];
  const std::int64_t begin = sum_of(first, self_), total = sum_of(first, n_);
  const bool in_place = is_in_place(entry_.form);
  const auto pass_all = [&] {
    Bytes all;
    for (std::int64_t k = 0; k < n_; ++k)
      append(all, input(k, 0, first[static_cast<std::size_t>(k)]));
    if (in_place)
      pass_in_place(input(self_, 0, own), begin, std::move(all));
    else
      pass(input(self_, 0, own), std::move(all));
  };
  const OperationFacts& facts = facts_of(entry_.operation);
  in_blocks_ = out_blocks_ = Blocks{first};
  if (entry_.has_blocks && facts.in == Extent::blocks) call_.in_blocks = &in_blocks_;
  if (entry_.has_blocks && facts.out == Extent::blocks) call_.out_blocks = &out_blocks_;
  if (facts.reduces && facts.in == facts.out && !has_root(entry_.operation)) {
    if (in_place) return pass_in_place(input(self_, 0, own), 0, result(0, own));
    return pass(input(self_, 0, own), result(0, own));
  }
  switch (entry_.operation) {
    case Operation::broadcast:
      return pass_in_place(input(self_, 0, own), 0, input(call_.root.value(), 0, own));
    case Operation::reduce:
      if (in_place && is_root()) return pass_in_place(input(self_, 0, own), 0, result(0, own));
      if (in_place) return pass_in_place(input(self_, 0, own), 0, input(self_, 0, own));
      pass(input(self_, 0, own), is_root() ? result(0, own) : Bytes{});
      if (!is_root()) keep(own);
      return;
    case Operation::all_gather:
      return pass_all();
    case Operation::gather:
      if (is_root()) return pass_all();
      pass(input(self_, 0, own), {});
      return keep(entry_.has_blocks ? 0 : total);
    case Operation::scatter:
      if (is_root() && in_place) {  // the output is the root's own block of the input
        pass_in_place(input(self_, 0, total), 0, input(self_, 0, total));
        out_at_ = begin;
        out_count_ = own;
        return;
      }
      return pass(is_root() ? input(self_, 0, total) : Bytes{},
                  input(call_.root.value(), begin, own));
    case Operation::reduce_scatter:
      return pass(input(self_, 0, total), result(begin, own));
    case Operation::all_to_all: {
      const Counts& sent = sizes[static_cast<std::size_t>(self_)];
      Counts received;
      Bytes all;
      for (const Counts& row : sizes) {
        const std::int64_t count = row[static_cast<std::size_t>(self_)];
        append(all, input(std::ssize(received), sum_of(row, self_), count));
        received.push_back(count);
      }
      in_blocks_ = Blocks{sent};
      out_blocks_ = Blocks{received};
      if (in_place) return pass_in_place(input(self_, 0, sum_of(sent, n_)), 0, std::move(all));
      return pass(input(self_, 0, sum_of(sent, n_)), std::move(all));
    }
    case Operation::send_recv:
      return pass(input(self_, 0, own), input(call_.source.value(), 0, own));
    default:
      return;
  }
}

}  // namespace rankmesh::conformance
