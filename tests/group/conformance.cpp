// SPDX-License-Identifier: BSD-3-Clause
#include "group/conformance.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "support/mpi_world.hpp"
#include "support/reductions.hpp"

namespace rankmesh_test {

using namespace rankmesh;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::byte untouched{0x5a};
constexpr std::int64_t guard = 64;  // bytes behind the output

// ------------------------------------------------------------------------------ values of numbers

// The values of reductions repeat after a prime number of elements, which is no count of the table
// and divides no size of a slot or of a piece, so that blocks at wrong places differ.
constexpr std::int64_t period = 1033;

template <class T>
inline constexpr bool is_narrow = is_narrow_float(DataTypeOf<T>::value);
// The type in which a T is computed.
template <class T>
using Computed = std::conditional_t<is_narrow<T>, float, T>;

// Values at the limits of a type. The order of the members does not matter to their sums, products,
// minima and maxima.
template <class T>
std::vector<T> limits(ReduceOp op) {
  using C = Computed<T>;
  using Numbers = std::numeric_limits<C>;
  if constexpr (std::is_integral_v<C>) {
    return {Numbers::max(),
            Numbers::min(),
            static_cast<C>(Numbers::max() - 1),
            C{3},
            C{1},
            static_cast<C>(Numbers::max() / 2 + 1),
            static_cast<C>(-1)};
  } else {
    const C nan = Numbers::quiet_NaN();
    const C inf = Numbers::infinity();
    std::vector<C> values{nan, C{1}, C{-0.0}, inf, C{-2}, -nan, C{0}, C{0.5}, -inf, nan, C{-0.0}};
    if (op == ReduceOp::min || op == ReduceOp::max)
      for (const C more : {Numbers::max(), Numbers::lowest(), C{2.5}}) values.push_back(more);
    // Sums that overflow the narrow type but not float32.
    if ((op == ReduceOp::sum || op == ReduceOp::avg) && is_narrow<T> && sizeof(T) == 2)
      values.insert(values.end(), {C{65504}, C{60000}});
    std::vector<T> result;
    for (const C value : values) result.push_back(static_cast<T>(value));
    return result;
  }
}

// Of 8 neighbouring elements, the first three change from place to place in such a way that every
// limit meets every other one at neighbouring members. Then come numbers of few digits, and last
// numbers that are rounded in sums (of wide floats) and in products.
enum class Kind { limit, small, rounded };
Kind kind_of(std::int64_t place) {
  const std::int64_t k = place % 8;
  return k < 3 ? Kind::limit : k < 5 ? Kind::small : Kind::rounded;
}

template <class T>
T value_of(ReduceOp op, const std::vector<T>& choices, std::int64_t member, std::int64_t place) {
  using C = Computed<T>;
  const auto n = static_cast<std::int64_t>(choices.size());
  if (kind_of(place) == Kind::limit)
    return choices[static_cast<std::size_t>((place + member * (1 + place / n)) % n)];
  if constexpr (is_narrow<T>) {
    if (kind_of(place) == Kind::rounded && op == ReduceOp::prod)
      return T{static_cast<float>((member * 5 + place * 3) % 7 + 9) / 16.0F};
    if (kind_of(place) == Kind::rounded)  // exact sums in float32, most of them not in the type
      return T{static_cast<float>((member * 37 + place * 11) % 29 - 9) / 16.0F};
  } else if constexpr (std::is_floating_point_v<T>) {
    if (kind_of(place) == Kind::rounded)
      return T{1} + static_cast<T>((member * 7919 + place * 104729) % 1000003) / T{999};
  }
  return static_cast<T>(static_cast<C>(1 + (member * 7 + place * 3) % 3));
}

// Whether the order in which the members are combined changes the rounded results.
bool depends_on_order(DataType type, ReduceOp op) {
  const bool is_wide = type == DataType::float32 || type == DataType::float64;
  const bool is_float = is_wide || is_narrow_float(type);
  return (is_float && op == ReduceOp::prod) ||
         (is_wide && (op == ReduceOp::sum || op == ReduceOp::avg));
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Computed<T>>(value));
}

// Whether two numbers differ by the rounding of a few steps at most.
template <class T>
bool is_close(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    const auto x = static_cast<double>(static_cast<Computed<T>>(a));
    const auto y = static_cast<double>(static_cast<Computed<T>>(b));
    const double unit = std::is_same_v<T, double>    ? 1e-14
                        : std::is_same_v<T, float>   ? 1e-5
                        : std::is_same_v<T, Float16> ? 1.0 / 1024
                        : sizeof(T) == 2             ? 1.0 / 128
                                                     : 1.0 / 4;
    return std::abs(x - y) <= unit * std::abs(y);
  }
}

// What one reduction of one type reads and gives at each place.
struct Values {
  Bytes own, result;
  // Counts the elements that differ from the results from `place` on. Which NaN a result is does
  // not matter; all other bits do.
  std::function<std::int64_t(const std::byte* is, std::int64_t place, std::int64_t count)> wrong;
};

template <class T>
Values values_of(ReduceOp op, const Carrier& carrier, const Order& order) {
  using C = Computed<T>;
  const std::vector<T> choices = limits<T>(op);
  const bool is_known = !order.empty() || carrier.members <= 2;
  const Order members = order.empty() ? in_group_order(carrier.members) : order;
  std::vector<T> own, result;
  for (std::int64_t place = 0; place < period; ++place) {
    const auto input = [&](std::int64_t member) {
      return static_cast<C>(value_of<T>(op, choices, member, place));
    };
    own.push_back(value_of<T>(op, choices, carrier.self, place));
    const ReduceOp inner = op == ReduceOp::avg ? ReduceOp::sum : op;
    const auto of_node = [&](std::int64_t node) {
      const auto& there = members[static_cast<std::size_t>(node)];
      return reduced<C>(inner, std::ssize(there),
                        [&](std::int64_t k) { return input(there[static_cast<std::size_t>(k)]); });
    };
    C whole = reduced<C>(inner, std::ssize(members), of_node);
    if (op == ReduceOp::avg) whole = static_cast<C>(whole / static_cast<C>(carrier.members));
    result.push_back(carrier.members == 1 ? own.back() : static_cast<T>(whole));
  }
  const bool may_differ = !is_known && depends_on_order(DataTypeOf<T>::value, op);
  const auto bytes = [](const std::vector<T>& values) {
    const auto view = std::as_bytes(std::span{values});
    return Bytes(view.begin(), view.end());
  };
  return {
      bytes(own), bytes(result),
      [result, may_differ](const std::byte* is, std::int64_t place, std::int64_t count) {
        std::int64_t differences = 0;
        for (std::int64_t i = 0; i < count; ++i, ++place) {
          T value;
          std::memcpy(&value, is + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
          const T expected = result[static_cast<std::size_t>(place % period)];
          if (std::memcmp(&value, &expected, sizeof(T)) == 0) continue;
          if (is_nan(value) && is_nan(expected)) continue;
          if (may_differ && kind_of(place % period) == Kind::rounded && is_close(value, expected))
            continue;
          ++differences;
        }
        return differences;
      }};
}

// Copies the elements from `place` on, which repeat.
void repeat(const Bytes& values, std::int64_t place, std::byte* to, std::int64_t count,
            std::int64_t element) {
  for (place %= period; count > 0; place = 0) {
    const std::int64_t n = std::min(count, period - place);
    std::memcpy(to, values.data() + place * element, static_cast<std::size_t>(n * element));
    to += n * element;
    count -= n;
  }
}

// ------------------------------------------------------------------------------ values that move

// Writes `bytes` bytes of what a member has from byte `begin` on, which nobody else has.
void fill_moved(std::byte* to, std::int64_t member, std::int64_t begin, std::int64_t bytes,
                std::int64_t number) {
  for (std::int64_t i = 0; i < bytes; ++i) {
    const std::int64_t at = begin + i;
    const std::uint64_t word =
        static_cast<std::uint64_t>(at / 8 + number * 7919) * 0x9e3779b97f4a7c15U +
        static_cast<std::uint64_t>(member) * 0xbf58476d1ce4e5b9U;
    to[i] = static_cast<std::byte>((word ^ (word >> 29)) >> (8 * (at % 8)));
  }
}

// ------------------------------------------------------------------------------ entries

enum class Form { blocking, in_place, async, async_in_place };
constexpr bool is_in_place(Form form) {
  return form == Form::in_place || form == Form::async_in_place;
}
constexpr bool is_async(Form form) { return form == Form::async || form == Form::async_in_place; }
constexpr const char* to_string(Form form) {
  constexpr const char* names[] = {"", " in place", " async", " async in place"};
  return names[static_cast<std::size_t>(form)];
}

struct Entry {
  Operation operation{};
  bool has_blocks = false;
  Form form{};
  DataType type{};
  ReduceOp op{};
  std::int64_t count = 0, number = 0;
};

bool has_form(Operation operation, bool has_blocks, Form form) {
  const bool has_in_place = operation != Operation::reduce_scatter &&
                            operation != Operation::send_recv && operation != Operation::barrier &&
                            operation != Operation::broadcast;
  return !is_in_place(form) || (has_in_place && !has_blocks);
}

std::vector<Entry> entries(const Conformance& table) {
  const std::vector<Operation> all{
      Operation::barrier,   Operation::broadcast,     Operation::reduce,  Operation::all_reduce,
      Operation::gather,    Operation::all_gather,    Operation::scatter, Operation::all_to_all,
      Operation::send_recv, Operation::reduce_scatter};
  constexpr Operation with_blocks[] = {Operation::all_gather, Operation::reduce_scatter,
                                       Operation::gather, Operation::scatter,
                                       Operation::all_to_all};
  constexpr std::int64_t rare = 10'000;
  std::vector<Entry> result;
  const auto add = [&](Entry entry) {
    entry.number = std::ssize(result);
    result.push_back(entry);
  };
  for (const Operation operation : table.operations.empty() ? all : table.operations)
    for (const bool has_blocks : {false, true})
      for (const Form form : {Form::blocking, Form::in_place, Form::async, Form::async_in_place}) {
        if (has_blocks && std::ranges::find(with_blocks, operation) == std::end(with_blocks))
          continue;
        if (!has_form(operation, has_blocks, form)) continue;
        for (const std::int64_t count : table.counts) {
          Entry entry{operation, has_blocks, form, table.types.front(), ReduceOp::sum, count};
          if (!reduces(operation)) {  // the type does not matter to the bytes
            entry.type = table.types[result.size() % table.types.size()];
            add(entry);
            continue;
          }
          for (std::size_t t = 0; t < table.types.size(); ++t)
            for (std::size_t k = 0; k < all_reductions.size(); ++k) {
              entry.type = table.types[t];
              entry.op = all_reductions[k];
              // Large calls of a type take turns at the reductions.
              const std::size_t only = (t + static_cast<std::size_t>(form)) % all_reductions.size();
              if (count < rare || k == only) add(entry);
            }
        }
      }
  // Neighbours in this order have little in common.
  std::shuffle(result.begin(), result.end(), std::mt19937{1});
  return result;
}

// ------------------------------------------------------------------------------ calls

// Returns the blocks of a v-form: sizes[a][b] is what member a has for member b.
std::vector<std::vector<std::int64_t>> block_sizes(const Entry& entry, std::int64_t members) {
  std::mt19937 random{static_cast<unsigned>(entry.number)};
  std::vector<std::vector<std::int64_t>> result(static_cast<std::size_t>(members));
  for (auto& row : result)
    for (std::int64_t k = 0; k < members; ++k)
      row.push_back(
          static_cast<std::int64_t>(random() % static_cast<unsigned>(2 * entry.count + 1)));
  return result;
}

// A call with its memory.
class Attempt {
 public:
  Attempt(const Entry& entry, const Carrier& carrier, const Values* values)
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
  Attempt(const Attempt&) = delete;

  [[nodiscard]] const Call& call() const { return call_; }

  [[nodiscard]] std::string text() const {
    const bool is_reduced = reduces(entry_.operation);
    return std::string{rankmesh::to_string(entry_.operation)} + (entry_.has_blocks ? "_v" : "") +
           rankmesh_test::to_string(entry_.form) + " of " + std::to_string(entry_.count) + " x " +
           std::string{rankmesh::to_string(entry_.type)} +
           (is_reduced ? ", " + std::string{rankmesh::to_string(entry_.op)} : "") + ", root " +
           std::to_string(call_.root.value());
  }

  // Returns what is wrong, or nothing.
  [[nodiscard]] std::string problem() const {
    const std::byte* const at = out_.data();
    std::int64_t wrong = 0;
    if (expected_.empty() || std::memcmp(at, expected_.data(), expected_.size()) == 0)
      wrong = 0;
    else if (is_reduced_here_)
      wrong = values_->wrong(at, place_, std::ssize(expected_) / element_);
    else
      for (std::size_t i = 0; i < expected_.size(); ++i) wrong += at[i] != expected_[i] ? 1 : 0;
    if (wrong > 0) return std::to_string(wrong) + " elements or bytes of the result are wrong";
    if (std::any_of(out_.begin() + std::ssize(expected_), out_.end(),
                    [](std::byte b) { return b != untouched; }))
      return "memory behind the result was written";
    if (in_ != sent_) return "the input was changed";
    return "";
  }

 private:
  [[nodiscard]] bool is_root() const { return call_.root.value() == self_; }

  // What a member passes, from element `begin` on.
  Bytes input(std::int64_t member, std::int64_t begin, std::int64_t count) const {
    Bytes result(static_cast<std::size_t>(count * element_));
    if (values_ != nullptr)
      repeat(values_->own, entry_.number + begin, result.data(), count, element_);
    else
      fill_moved(result.data(), member, begin * element_, count * element_, entry_.number);
    return result;
  }
  Bytes result(std::int64_t begin, std::int64_t count) {
    Bytes bytes(static_cast<std::size_t>(count * element_));
    place_ = entry_.number + begin;
    is_reduced_here_ = true;
    repeat(values_->result, place_, bytes.data(), count, element_);
    return bytes;
  }
  static void append(Bytes& to, const Bytes& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  // Passes `input`, and gets `expected` in memory of its size.
  void pass(Bytes input, Bytes expected) {
    in_ = std::move(input);
    expected_ = std::move(expected);
    out_.assign(expected_.size(), untouched);
    set_in(in_.data(), std::ssize(in_) / element_);
  }
  // The output holds the input before the call.
  void pass_in_place(const Bytes& input, std::int64_t at, Bytes expected) {
    expected_ = std::move(expected);
    out_.assign(expected_.size(), untouched);
    std::copy(input.begin(), input.end(), out_.begin() + at * element_);
    in_at_ = at;
    in_count_ = std::ssize(input) / element_;
  }
  // The output stays as it is, in memory of `count` elements. Half of the calls pass no memory.
  void keep(std::int64_t count) {
    expected_.assign(static_cast<std::size_t>(entry_.number / n_ % 2 == 0 ? count * element_ : 0),
                     untouched);
    out_ = expected_;
  }
  void set_in(const std::byte* data, std::int64_t count) { call_.in = {data, count, entry_.type}; }

  void set_memory() {
    if (entry_.has_blocks)
      set_blocks();
    else
      set_equal();
    if (out_count_ < 0) out_count_ = std::ssize(out_) / element_;
    out_.resize(out_.size() + guard, untouched);
    call_.out = {out_.data() + out_at_ * element_, out_count_, entry_.type};
    if (in_at_ >= 0) set_in(out_.data() + in_at_ * element_, in_count_);
    sent_ = in_;
  }

  void set_equal() {
    const std::int64_t count = entry_.count;
    const bool in_place = is_in_place(entry_.form);
    const auto of_all = [&] {
      Bytes all;
      for (std::int64_t k = 0; k < n_; ++k) append(all, input(k, 0, count));
      return all;
    };
    const auto pass_block = [&](Bytes all) {
      if (in_place)
        pass_in_place(input(self_, 0, count), self_ * count, std::move(all));
      else
        pass(input(self_, 0, count), std::move(all));
    };
    switch (entry_.operation) {
      case Operation::broadcast:
        return pass_in_place(input(self_, 0, count), 0, input(call_.root.value(), 0, count));
      case Operation::all_reduce:
        if (in_place) return pass_in_place(input(self_, 0, count), 0, result(0, count));
        return pass(input(self_, 0, count), result(0, count));
      case Operation::reduce:
        if (in_place && is_root())
          return pass_in_place(input(self_, 0, count), 0, result(0, count));
        if (in_place) return pass_in_place(input(self_, 0, count), 0, input(self_, 0, count));
        pass(input(self_, 0, count), is_root() ? result(0, count) : Bytes{});
        if (!is_root()) keep(count);
        return;
      case Operation::all_gather:
        return pass_block(of_all());
      case Operation::gather:
        if (is_root()) return pass_block(of_all());
        pass(input(self_, 0, count), {});
        return keep(n_ * count);
      case Operation::scatter:
        if (is_root() && in_place) {  // the output is the root's own block of the input
          pass_in_place(input(self_, 0, n_ * count), 0, input(self_, 0, n_ * count));
          out_at_ = self_ * count;
          out_count_ = count;
          return;
        }
        return pass(is_root() ? input(self_, 0, n_ * count) : Bytes{},
                    input(call_.root.value(), self_ * count, count));
      case Operation::reduce_scatter:
        return pass(input(self_, 0, n_ * count), result(self_ * count, count));
      case Operation::all_to_all: {
        Bytes all;
        for (std::int64_t k = 0; k < n_; ++k) append(all, input(k, self_ * count, count));
        if (in_place) return pass_in_place(input(self_, 0, n_ * count), 0, std::move(all));
        return pass(input(self_, 0, n_ * count), std::move(all));
      }
      case Operation::send_recv:
        return pass(input(self_, 0, count), input(call_.source.value(), 0, count));
      default:
        return;
    }
  }

  void set_blocks() {
    const auto sizes = block_sizes(entry_, n_);
    const auto& first = sizes[0];
    const auto own = static_cast<std::size_t>(self_);
    const std::int64_t total = std::accumulate(first.begin(), first.end(), std::int64_t{0});
    const std::int64_t begin =
        std::accumulate(first.begin(), first.begin() + self_, std::int64_t{0});
    const auto of_all = [&] {
      Bytes all;
      for (std::int64_t k = 0; k < n_; ++k)
        append(all, input(k, 0, first[static_cast<std::size_t>(k)]));
      return all;
    };
    switch (entry_.operation) {
      case Operation::all_gather:
        out_blocks_ = Blocks{first};
        call_.out_blocks = &out_blocks_;
        return pass(input(self_, 0, first[own]), of_all());
      case Operation::gather:
        out_blocks_ = Blocks{first};
        call_.out_blocks = &out_blocks_;
        pass(input(self_, 0, first[own]), is_root() ? of_all() : Bytes{});
        if (!is_root()) keep(0);
        return;
      case Operation::reduce_scatter:
        in_blocks_ = Blocks{first};
        call_.in_blocks = &in_blocks_;
        return pass(input(self_, 0, total), result(begin, first[own]));
      case Operation::scatter:
        in_blocks_ = Blocks{first};
        call_.in_blocks = &in_blocks_;
        return pass(is_root() ? input(self_, 0, total) : Bytes{},
                    input(call_.root.value(), begin, first[own]));
      default: {
        std::vector<std::int64_t> received;
        Bytes all;
        for (const auto& row : sizes) {
          const std::int64_t before =
              std::accumulate(row.begin(), row.begin() + self_, std::int64_t{0});
          append(all, input(std::ssize(received), before, row[own]));
          received.push_back(row[own]);
        }
        in_blocks_ = Blocks{sizes[own]};
        out_blocks_ = Blocks{received};
        call_.in_blocks = &in_blocks_;
        call_.out_blocks = &out_blocks_;
        return pass(
            input(self_, 0, std::accumulate(sizes[own].begin(), sizes[own].end(), std::int64_t{0})),
            std::move(all));
      }
    }
  }

  Entry entry_;
  const Values* values_;
  std::int64_t n_, self_, element_;
  Call call_{};
  Blocks in_blocks_, out_blocks_;
  Bytes in_, sent_, out_, expected_;
  std::int64_t place_ = 0, in_at_ = -1, in_count_ = 0;
  std::int64_t out_at_ = 0, out_count_ = -1;  // -1: all
  bool is_reduced_here_ = false;
};

// ------------------------------------------------------------------------------ groups

template <class T>
void run_typed(GroupCoordinator& group, const Call& c) {
  const std::span<const T> in{reinterpret_cast<const T*>(c.in.data),
                              static_cast<std::size_t>(c.in.count)};
  const std::span<T> out{reinterpret_cast<T*>(c.out.data), static_cast<std::size_t>(c.out.count)};
  const bool in_place = c.in.data == c.out.data;
  switch (c.operation) {
    case Operation::broadcast:
      return group.broadcast(out, c.root);
    case Operation::all_reduce:
      return in_place ? group.all_reduce(out, c.reduction) : group.all_reduce(in, out, c.reduction);
    case Operation::reduce:
      return in_place ? group.reduce(out, c.root, c.reduction)
                      : group.reduce(in, out, c.root, c.reduction);
    case Operation::all_gather:
      return c.has_blocks() ? group.all_gather_v(in, out, *c.out_blocks)
                            : group.all_gather(in, out);
    case Operation::gather:
      return c.has_blocks() ? group.gather_v(in, out, *c.out_blocks, c.root)
                            : group.gather(in, out, c.root);
    case Operation::reduce_scatter:
      return c.has_blocks() ? group.reduce_scatter_v(in, out, *c.in_blocks, c.reduction)
                            : group.reduce_scatter(in, out, c.reduction);
    case Operation::scatter:
      return c.has_blocks() ? group.scatter_v(in, out, *c.in_blocks, c.root)
                            : group.scatter(in, out, c.root);
    case Operation::all_to_all:
      return c.has_blocks() ? group.all_to_all_v(in, out, *c.in_blocks, *c.out_blocks)
                            : group.all_to_all(in, out);
    case Operation::send_recv:
      return group.send_recv(in, out, next, prev);
    default:
      return group.barrier();
  }
}

bool is_in_turn(std::size_t place, const Conformance& table) {
  const int share = table.share > 0 ? table.share : size() <= 4 ? 3 : 24;
  return static_cast<int>(place % static_cast<std::size_t>(share)) == (size() + table.turn) % share;
}

}  // namespace

Order in_group_order(std::int64_t members) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(members));
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

Order by_nodes(const Mesh& mesh, const GroupCoordinator& group) {
  std::vector<std::int32_t> nodes;
  Order order;
  for (std::int64_t k = 0; k < group.size(); ++k) {
    const std::int32_t node = mesh.placement().node(group.ranks().at(k));
    const auto at = static_cast<std::size_t>(std::ranges::find(nodes, node) - nodes.begin());
    if (at == nodes.size()) {
      nodes.push_back(node);
      order.emplace_back();
    }
    order[at].push_back(k);
  }
  return order;
}

Order in_shared_memory(const Mesh& mesh, const GroupCoordinator& group) {
  const Order nodes = by_nodes(mesh, group);
  return nodes.size() == 1 ? nodes : Order{};
}

void check_conformance(const Carrier& carrier, const Conformance& table) {
  constexpr std::size_t most_in_flight = 4;
  struct InFlight {
    std::unique_ptr<Attempt> attempt;
    std::function<void()> wait;
  };
  std::map<std::tuple<DataType, ReduceOp, bool>, Values> values;
  std::deque<InFlight> in_flight;
  std::mt19937 own{static_cast<unsigned>(carrier.self)};  // chooses the call to wait for
  int runs = 0, failures = 0;
  const auto judge = [&](const Attempt& attempt) {
    ++runs;
    const std::string problem = attempt.problem();
    if (!problem.empty() && ++failures <= 5) FAIL_CHECK(attempt.text() << ": " << problem);
  };
  const auto finish_one = [&] {
    const auto at = static_cast<std::ptrdiff_t>(own() % in_flight.size());
    INFO(in_flight[static_cast<std::size_t>(at)].attempt->text());
    in_flight[static_cast<std::size_t>(at)].wait();
    judge(*in_flight[static_cast<std::size_t>(at)].attempt);
    in_flight.erase(in_flight.begin() + at);
  };
  const std::vector<Entry> all = entries(table);
  for (std::size_t place = 0; place < all.size(); ++place) {
    const Entry& entry = all[place];
    if (!is_in_turn(place, table)) continue;
    const Values* used = nullptr;
    if (reduces(entry.operation)) {
      const bool is_known = table.order.size() == 1 || !entry.has_blocks;
      auto& of_type = values[{entry.type, entry.op, is_known}];
      if (of_type.own.empty())
        of_type = visit(entry.type, [&]<class T>(std::type_identity<T>) {
          return values_of<T>(entry.op, carrier, is_known ? table.order : Order{});
        });
      used = &of_type;
    }
    auto attempt = std::make_unique<Attempt>(entry, carrier, used);
    std::function<void()> wait;
    {
      INFO(attempt->text());
      if (is_async(entry.form))
        wait = carrier.start(attempt->call());
      else
        carrier.run(attempt->call());
    }
    if (wait == nullptr) {
      judge(*attempt);
      continue;
    }
    in_flight.push_back({std::move(attempt), std::move(wait)});
    if (in_flight.size() > most_in_flight) finish_one();
  }
  while (!in_flight.empty()) finish_one();
  CHECK(runs > 0);
  CHECK(failures == 0);
}

void check_conformance(GroupCoordinator& group, const Conformance& table) {
  CAPTURE(group.name());
  Carrier carrier{group.size(), group.rank_in_group().value(), {}, {}};
  carrier.run = [&](const Call& call) {
    visit(call.out.type, [&]<class T>(std::type_identity<T>) { run_typed<T>(group, call); });
  };
  carrier.start = [&](const Call& call) -> std::function<void()> {
    auto work = std::make_shared<Work>(detail::GroupAccess::start(group, call));
    return [work] { work->wait(); };
  };
  check_conformance(carrier, table);
}

}  // namespace rankmesh_test
