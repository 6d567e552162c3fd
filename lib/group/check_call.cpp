// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "base/detail/overlap.hpp"
#include "detail/check_call.hpp"

namespace rankmesh::detail {
namespace {

class Checker {
 public:
  Checker(const Call& call, std::string_view group, RankInGroup self, std::int64_t size)
      : call_{call}, group_{group}, self_{self}, size_{size} {}

  void check() const {
    same_kind();
    memory();
    if (call_.rows != 1) rows();
    if (call_.has_blocks()) return blocks();
    if (is_point_to_point(call_.operation)) return message();
    collective();
  }

  // Checks a v-form whose members have not exchanged the sizes of the blocks yet.
  void sizes(bool of_arrays) const {
    const Call& c = call_;
    memory();
    if (has_root(c.operation)) member(c.root, "root");
    if (c.in_blocks == nullptr) return;
    if (of_arrays && c.in_blocks->rows() > 0)
      refuse("a SlicedAxis may divide the arrays that are the elements of in",
             "pass memory for the block, or a span of the innermost elements as in");
    if (has_input(c.operation, c.root == self_)) (void)own_block(c.in_blocks, c.in.count, "in");
  }

 private:
  void collective() const {
    const Call& c = call_;
    const OperationFacts& facts = facts_of(c.operation);
    if (facts.reduces && c.reduction > ReduceOp::avg)
      refuse(fmt::format("there is no ReduceOp with the number {}", static_cast<int>(c.reduction)),
             "pass ReduceOp::sum, prod, min, max or avg");
    if (facts.awaited == Awaited::earlier && c.reduction == ReduceOp::avg)
      refuse(fmt::format("{} cannot be computed", to_string(c.reduction)),
             "use sum, prod, min or max (for complex numbers, sum or prod), or a function");
    if (has_root(c.operation)) {
      member(c.root, "root");
      if (c.root != self_) return;
    }
    if (facts.in == Extent::none || facts.out == Extent::none) return;
    equal_blocks();
    in_place(facts.in_place);
  }

  // Checks the counts of a member that has an input and an output.
  void equal_blocks() const {
    const Call& c = call_;
    if (gathers(c.operation))
      counts(c.out.count, size_ * c.in.count, "out", "size() times as many elements as in");
    else if (scatters(c.operation))
      counts(c.in.count, size_ * c.out.count, "in", "size() times as many elements as out");
    else
      counts(c.out.count, c.in.count, "out", "as many elements as in");
    if (c.operation == Operation::all_to_all && c.in.count % size_ != 0)
      refuse(
          fmt::format("the {} elements of in cannot be divided by {} members", c.in.count, size_),
          "give every member the same number of elements");
  }

  void in_place(InPlace form) const {
    const Call& c = call_;
    switch (form) {
      case InPlace::none:
        return overlap(c.in, -1);
      case InPlace::same:
        return overlap(c.in, 0);
      case InPlace::block_of_output:
        return overlap(c.in, own(self_.value() * c.in.count));
      case InPlace::block_of_input:
        return overlap(c.in.slice(self_.value() * c.out.count, c.out.count), own(0), c.in);
      case InPlace::block_of_input_on_device:
        if (c.rows == 1 && c.out.kind == MemoryKind::device &&
            c.out.data == c.in.slice(self_.value() * c.out.count, 0).data)
          return;
        return overlap(c.in, size_ == 1 ? 0 : -1);
    }
  }

  void message() const {
    const Call& c = call_;
    if (c.operation == Operation::send) return peer(c.destination, "destination");
    if (c.operation == Operation::recv) return peer(c.source, "source");
    member(c.destination, "destination");
    member(c.source, "source");
    tag();
    const bool to_itself = c.destination == self_;
    if (to_itself != (c.source == self_))
      refuse("only one of destination and source is the caller itself",
             "pass the caller's rank for both, or for neither");
    if (to_itself) counts(c.out.count, c.in.count, "out", "as many elements as in");
    overlap(c.in, to_itself ? 0 : -1);
  }

  // Checks the buffers that this member uses.
  void memory() const {
    const bool at_root = call_.root == self_;
    if (has_input(call_.operation, at_root)) exists(call_.in, "in");
    if (has_output(call_.operation, at_root)) exists(call_.out, "out");
  }

  void exists(const auto& buffer, std::string_view name) const {
    if (static_cast<std::uint64_t>(buffer.count) > largest_buffer)
      refuse(fmt::format("{} has {} elements, which is too many", name, buffer.count),
             "correct the size of the span; the largest has 2^48-1 elements");
    if (buffer.data == nullptr && buffer.count != 0)
      refuse(fmt::format("{} has {} elements, but its address is null", name, buffer.count),
             "pass memory that exists, or an empty span");
  }

  // Operations with one buffer do not use the other one, so its type and kind do not matter.
  void same_kind() const {
    const OperationFacts& facts = facts_of(call_.operation);
    if (facts.in == Extent::none || facts.out == Extent::none) return;
    if (call_.in.type != call_.out.type)
      refuse(fmt::format("in holds {}, but out holds {}", to_string(call_.in.type),
                         to_string(call_.out.type)),
             "use the same type for both");
    if (call_.in.kind != call_.out.kind)
      refuse("in and out are in different kinds of memory",
             "copy one of them to the other kind of memory first");
  }

  // Checks a v-form. It cannot compare the counts with the counts of other members. At members
  // other than the root, the divided buffer of gather and scatter is ignored, so its blocks have no
  // limit there.
  void blocks() const {
    const Call& c = call_;
    const bool at_root = c.root == self_;
    const bool of_out = gathers(c.operation);
    const bool of_in = scatters(c.operation);
    if ((of_out && c.in_blocks != nullptr) || (of_in && c.out_blocks != nullptr))
      refuse(fmt::format("{} is one block, but it has Blocks", of_out ? "in" : "out"),
             fmt::format("pass the Blocks of {} only", of_out ? "out" : "in"));
    if (!has_v_form(c.operation))
      refuse("the operation does not support blocks of different sizes", "pass no Blocks");
    if (has_root(c.operation)) member(c.root, "root");
    if (of_out) {
      const bool has_whole = has_output(c.operation, at_root);
      const auto [place, count] =
          own_block(c.out_blocks, has_whole ? c.out.count : INT64_MAX, "out");
      if (has_whole) separate(*c.out_blocks);
      counts(c.in.count, count, "in", "as many elements as this rank's block");
      if (has_whole) overlap(c.in, c.out_blocks->rows() > 1 ? -1 : place);
    } else if (of_in) {
      const bool has_whole = has_input(c.operation, at_root);
      const auto [place, count] = own_block(c.in_blocks, has_whole ? c.in.count : INT64_MAX, "in");
      counts(c.out.count, count, "out", "as many elements as this rank's block");
      if (!has_whole) return;
      if (facts_of(c.operation).in_place == InPlace::block_of_input && c.in_blocks->rows() <= 1)
        return overlap(c.in.slice(place, c.out.count), 0, c.in);
      overlap(c.in, -1);
    } else {
      const std::int64_t sent = own_block(c.in_blocks, c.in.count, "in").count;
      counts(own_block(c.out_blocks, c.out.count, "out").count, sent, "out",
             "as many elements in this rank's block as in");
      separate(*c.out_blocks);
      overlap(c.in, -1);
    }
  }

  struct Block {
    std::int64_t place, count;
  };
  // Checks that all blocks lie in a buffer of `elements` elements, and returns this member's block.
  [[nodiscard]] Block own_block(const Blocks* blocks, std::int64_t elements,
                                std::string_view name) const {
    if (blocks == nullptr)
      refuse(fmt::format("{} has no Blocks", name), "pass Blocks with one count per member");
    if (blocks->rows() > 1 && elements != INT64_MAX) whole_array(*blocks, elements);
    const auto& block_counts = blocks->counts();
    const auto& displacements = blocks->displacements();
    if (std::ssize(block_counts) != size_ || displacements.size() != block_counts.size())
      refuse(fmt::format("{} has {} counts and {} displacements", name, block_counts.size(),
                         displacements.size()),
             fmt::format("pass {} of each, one per member", size_));
    for (std::size_t k = 0; k < block_counts.size(); ++k)
      if (block_counts[k] < 0 || displacements[k] < 0)
        refuse(fmt::format("block {} of {} has {} elements and the displacement {}", k, name,
                           block_counts[k], displacements[k]),
               "counts and displacements must be 0 or more");
      else if (displacements[k] > elements - block_counts[k])
        refuse(fmt::format("block {} of {} lies outside its {} elements", k, name, elements),
               "correct its count or displacement");
    const auto own = static_cast<std::size_t>(self_.value());
    return {displacements[own], block_counts[own]};
  }

  // Checks an array that a SlicedAxis divides.
  void whole_array(const Blocks& blocks, std::int64_t elements) const {
    if (call_.is_on_device())
      throw UsageError{"an array in device memory is divided along an axis other than the first",
                       "divide the array along the first axis, or copy the array to the host"};
    const auto& parts = blocks.counts();
    const std::int64_t all = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    if (elements != all)
      throw UsageError{fmt::format("the whole array has {} elements, but the shape has {}",
                                   elements / blocks.units(), all / blocks.units()),
                       "give the shape of the whole array"};
  }
  // Checks that no element of `out` belongs to two blocks. Otherwise the value of this element
  // would be undefined: it could be the value of either block.
  void separate(const Blocks& blocks) const {
    const auto& block_counts = blocks.counts();
    const auto& displacements = blocks.displacements();
    std::int64_t end = 0;
    const auto follows = [&](std::size_t k) {
      if (block_counts[k] == 0) return true;
      const bool is_behind = displacements[k] >= end;
      end = displacements[k] + block_counts[k];
      return is_behind;
    };
    std::vector<std::size_t> order(block_counts.size());
    std::iota(order.begin(), order.end(), 0);
    if (std::ranges::all_of(order, follows)) return;  // most programs list the blocks in order
    std::ranges::sort(order, {}, [&](std::size_t k) { return displacements[k]; });
    end = 0;
    std::size_t previous = 0;
    for (const std::size_t k : order) {
      if (!follows(k))
        refuse(fmt::format("blocks {} and {} of out overlap", std::min(previous, k),
                           std::max(previous, k)),
               "correct their counts or displacements");
      if (block_counts[k] != 0) previous = k;
    }
  }

  void rows() const {
    const Call& c = call_;
    const bool of_out = gathers(c.operation);
    const std::int64_t block = of_out ? c.in.count : c.out.count;
    if ((!of_out && !scatters(c.operation)) || c.has_blocks() || c.rows < 1 || block % c.rows != 0)
      refuse(fmt::format("blocks of {} elements cannot have {} rows", block, c.rows),
             "only equal blocks of all_gather, gather, reduce_scatter and scatter have rows, and "
             "the rows must divide a block");
  }

  // Where this member's block begins in the whole buffer. Along an axis other than the first, a
  // block is not contiguous in the whole buffer, so such calls cannot work in place.
  [[nodiscard]] std::int64_t own(std::int64_t place) const { return call_.rows == 1 ? place : -1; }

  [[noreturn]] void refuse(std::string_view problem, std::string_view hint) const {
    throw UsageError{
        fmt::format("{}.{}{} on rank {} of {} in the group: {}", group_, to_string(call_.operation),
                    call_.has_blocks() ? "_v" : "", self_.value(), size_, problem),
        std::string{hint}};
  }

  void member(RankInGroup rank, std::string_view role) const {
    if (rank.value() < 0 || rank.value() >= size_)
      refuse(fmt::format("the {} {} is outside the group", role, rank.value()),
             fmt::format("ranks in this group are numbered from 0 to {}", size_ - 1));
  }

  void tag() const {
    if (call_.tag < 0 || call_.tag > max_tag)
      refuse(fmt::format("the tag {} is out of range", call_.tag),
             fmt::format("use a tag from 0 to {}", max_tag));
  }

  void peer(RankInGroup rank, std::string_view role) const {
    member(rank, role);
    tag();
    if (rank == self_ && call_.is_on_device())
      refuse(fmt::format("the {} is the caller itself", role),
             "use send_recv for a message on device memory from a member to itself");
  }

  void counts(std::int64_t is, std::int64_t wanted, std::string_view name,
              std::string_view rule) const {
    if (is != wanted)
      refuse(fmt::format("{} has {} elements, but {} are needed", name, is, wanted),
             fmt::format("{} needs {}{}", name, rule,
                         has_root(call_.operation) && !call_.has_blocks() ? " at the root" : ""));
  }

  // Checks that the input and the output do not overlap, unless the operation is in place. It is in
  // place if this rank's block of the input begins exactly `allowed` elements after the beginning
  // of `out`. If `allowed` is -1, the operation has no form in place.
  void overlap(ConstBuffer in, std::int64_t allowed) const { overlap(in, allowed, in); }
  void overlap(ConstBuffer own_block, std::int64_t allowed, ConstBuffer whole_in) const {
    if (!detail::overlap(whole_in, call_.out.as_input())) return;
    if (allowed >= 0 && own_block.data == call_.out.slice(allowed, 0).data) return;
    refuse("in and out overlap", allowed < 0
                                     ? "use separate memory"
                                     : "use separate memory, or exactly the same memory (in "
                                       "place)");
  }

  const Call& call_;
  std::string_view group_;
  RankInGroup self_;
  std::int64_t size_;
};

}  // namespace

void check_call(const Call& call, std::string_view group, RankInGroup self, std::int64_t size) {
  Checker{call, group, self, size}.check();
}

void check_sizes(const Call& call, bool of_arrays, std::string_view group, RankInGroup self,
                 std::int64_t size) {
  Checker{call, group, self, size}.sizes(of_arrays);
}

}  // namespace rankmesh::detail
