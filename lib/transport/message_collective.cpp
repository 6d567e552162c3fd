// SPDX-License-Identifier: BSD-3-Clause
#include "detail/message_collective.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mpi/detail/returned_errors.hpp"
#include "rankmesh/layout/slice.hpp"
#include "rankmesh/mpi/datatype.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;
using mpi::CountedType;

void copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

MessageCollective::MessageCollective(const Call& call, const mpi::Members& members,
                                     std::int64_t largest, int tag, SpareMemory& spare)
    : call_{call},
      members_{members},
      largest_{largest},
      tag_{members.tag_of(tag)},
      self_{members.rank()},
      size_{members.size()},
      spare_{spare} {
  switch (call.operation) {
    case Operation::barrier:
      begin_barrier();
      break;
    case Operation::broadcast:
      begin_broadcast();
      break;
    case Operation::reduce:
      begin_reduction(Result::at_root, shares_of_reduction(call.root.value()));
      break;
    case Operation::all_reduce:
      begin_reduction(Result::everywhere, shares_of_reduction(0));
      break;
    case Operation::reduce_scatter:
      begin_reduction(Result::of_own_share, shares_of_blocks());
      break;
    case Operation::all_gather:
      begin_all_gather();
      break;
    case Operation::gather:
      begin_gather();
      break;
    case Operation::scatter:
      begin_scatter();
      break;
    case Operation::all_to_all:
      begin_all_to_all();
      break;
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      break;  // see MpiMessage
  }
  (void)begin_step();
}

MessageCollective::~MessageCollective() {
  if (is_complete_) return;
  leak(scratch_.data);
  leak(result_);
}

void MessageCollective::reserve_scratch(std::int64_t bytes) {
  if (spare_.bytes >= bytes)
    scratch_ = {std::move(spare_.data), std::exchange(spare_.bytes, 0)};
  else
    scratch_ = {std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)),
                bytes};
}

void MessageCollective::complete() {
  is_complete_ = true;
  if (scratch_.bytes > spare_.bytes && scratch_.bytes <= most_spare_bytes)
    spare_ = std::move(scratch_);
}

void MessageCollective::wait() {
  do {
    const mpi::ReturnedErrors returned{MPI_COMM_WORLD};
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
          "MPI_Waitall");
  } while (begin_step());
  complete();
}

bool MessageCollective::test() {
  while (!is_complete_) {
    int are_done = 0;
    const mpi::ReturnedErrors returned{MPI_COMM_WORLD};
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &are_done,
                      MPI_STATUSES_IGNORE),
          "MPI_Testall");
    if (are_done == 0) return false;
    if (!begin_step()) complete();
  }
  return true;
}

bool MessageCollective::begin_step() {
  if (next_step_ == steps_) return false;
  requests_.clear();
  step_(next_step_++);
  return true;
}

void MessageCollective::send(std::int64_t member, const std::byte* data, std::int64_t bytes) {
  const CountedType type{bytes, DataType::uint8, largest_};
  check(MPI_Isend(data, type.count(), type.type(), members_.rank_of(member), tag_,
                  members_.comm().native(), &requests_.emplace_back(MPI_REQUEST_NULL)),
        "MPI_Isend");
}

void MessageCollective::receive(std::int64_t member, std::byte* data, std::int64_t bytes) {
  const CountedType type{bytes, DataType::uint8, largest_};
  check(MPI_Irecv(data, type.count(), type.type(), members_.rank_of(member), tag_,
                  members_.comm().native(), &requests_.emplace_back(MPI_REQUEST_NULL)),
        "MPI_Irecv");
}

// The block of a member in `in` or `out`.
ConstBuffer MessageCollective::in_block(std::int64_t member, std::int64_t count) const {
  if (call_.in_blocks == nullptr) return call_.in.slice(member * count, count);
  return block_of(call_.in, call_.in_blocks, static_cast<std::size_t>(member));
}
Buffer MessageCollective::out_block(std::int64_t member, std::int64_t count) const {
  if (call_.out_blocks == nullptr) return call_.out.slice(member * count, count);
  return block_of(call_.out, call_.out_blocks, static_cast<std::size_t>(member));
}

void MessageCollective::begin_barrier() {
  steps_ = 2;
  step_ = [this](std::int64_t step) {
    for_each_other([&](std::int64_t k) {
      if (self_ != 0 && k != 0) return;
      if ((self_ == 0) == (step == 0))
        receive(k, nullptr, 0);
      else
        send(k, nullptr, 0);
    });
  };
}

void MessageCollective::begin_broadcast() {
  if (size_ > 2 && call_.out.bytes() > largest_undivided) return begin_divided_broadcast();
  steps_ = 1;
  step_ = [this](std::int64_t) {
    if (!is_root()) return receive(call_.root.value(), call_.out);
    for_each_other([&](std::int64_t k) { send(k, call_.out.as_input()); });
  };
}

// The root sends a share to each other member, and these members exchange their shares. While a
// piece arrives from the root, the members exchange the previous piece.
void MessageCollective::begin_divided_broadcast() {
  const std::int64_t root = call_.root.value();
  for (std::int64_t k = 0, place = 0; k < size_; ++k) {
    if (k == root) {
      shares_.push_back({});
      continue;
    }
    const Slice slice = Slice::of(call_.out.bytes(), size_ - 1, place++);
    shares_.push_back({slice.begin(), slice.size()});
  }
  steps_ = pieces() + 1;
  step_ = [this, root](std::int64_t step) {
    const auto send_piece = [&](std::int64_t to, std::int64_t owner, std::int64_t piece) {
      const Share part = piece_of(owner, piece);
      if (part.count > 0) send(to, call_.out.data + part.begin, part.count);
    };
    const auto receive_piece = [&](std::int64_t from, std::int64_t owner, std::int64_t piece) {
      const Share part = piece_of(owner, piece);
      if (part.count > 0) receive(from, call_.out.data + part.begin, part.count);
    };
    if (is_root()) return for_each_other([&](std::int64_t k) { send_piece(k, k, step); });
    receive_piece(root, self_, step);
    for_each_other([&](std::int64_t k) {
      if (k == root || step == 0) return;
      receive_piece(k, k, step - 1);
      send_piece(k, self_, step - 1);
    });
  };
}

void MessageCollective::begin_all_gather() {
  steps_ = 1;
  step_ = [this](std::int64_t) {
    const std::int64_t count = call_.in.count;
    for_each_other([&](std::int64_t k) { receive(k, out_block(k, count)); });
    for_each_other([&](std::int64_t k) { send(k, call_.in); });
    copy(out_block(self_, count).data, call_.in.data, call_.in.bytes());
  };
}

void MessageCollective::begin_gather() {
  steps_ = 1;
  step_ = [this](std::int64_t) {
    if (!is_root()) return send(call_.root.value(), call_.in);
    const std::int64_t count = call_.in.count;
    for_each_other([&](std::int64_t k) { receive(k, out_block(k, count)); });
    copy(out_block(self_, count).data, call_.in.data, call_.in.bytes());
  };
}

void MessageCollective::begin_scatter() {
  steps_ = 1;
  step_ = [this](std::int64_t) {
    if (!is_root()) return receive(call_.root.value(), call_.out);
    const std::int64_t count = call_.out.count;
    for_each_other([&](std::int64_t k) { send(k, in_block(k, count)); });
    copy(call_.out.data, in_block(self_, count).data, call_.out.bytes());
  };
}

void MessageCollective::begin_all_to_all() {
  steps_ = 1;
  step_ = [this](std::int64_t) {
    const std::int64_t count = call_.in.count / size_;
    const bool in_place = call_.in.data == call_.out.data && call_.in.data != nullptr;
    if (in_place) {
      reserve_scratch(call_.in.bytes());
      copy(scratch_.data.get(), call_.in.data, call_.in.bytes());
    }
    const auto block = [&](std::int64_t k) {
      ConstBuffer of_call = in_block(k, count);
      if (in_place) of_call.data = scratch_.data.get() + (of_call.data - call_.in.data);
      return of_call;
    };
    for_each_other([&](std::int64_t k) { receive(k, out_block(k, count)); });
    for_each_other([&](std::int64_t k) { send(k, block(k)); });
    copy(out_block(self_, count).data, block(self_).data, block(self_).bytes());
  };
}

std::int64_t MessageCollective::pieces() const {
  const std::int64_t longest = std::ranges::max(shares_, {}, &Share::count).count;
  const std::int64_t each = std::max<std::int64_t>(1, piece_bytes / unit_);
  return std::max<std::int64_t>(1, (longest + each - 1) / each);
}

MessageCollective::Share MessageCollective::piece_of(std::int64_t member,
                                                     std::int64_t piece) const {
  const Share& share = shares_[static_cast<std::size_t>(member)];
  const std::int64_t each = std::max<std::int64_t>(1, piece_bytes / unit_);
  const std::int64_t begin = std::min(piece * each, share.count);
  return {share.begin + begin, std::min(each, share.count - begin)};
}

}  // namespace rankmesh::detail
