// What each way of carrying an operation publishes and reads, step by step.
#include <algorithm>

#include "detail/reduce_kernels.hpp"
#include "detail/shm_engine.hpp"

namespace rankmesh::shm {

// Depends only on what all members pass alike.
Way Engine::way_of(const Call& call) const {
  const bool in_place = std::max(call.in.bytes(), call.out.bytes()) >= limits_.symmetric_bytes &&
                        is_in_place(call, group_);
  switch (call.operation) {
    case Operation::barrier:
      return Way::barrier;
    case Operation::broadcast:
      if (call.out.count == 0) return Way::nothing;
      return in_place ? Way::in_place_broadcast : Way::broadcast;
    case Operation::all_reduce:
      if (call.out.count == 0) return Way::nothing;
      if (in_place) return Way::in_place_all_reduce;
      return call.out.bytes() <=
                     std::min(limits_.flat_bytes, static_cast<std::int64_t>(slot_bytes_))
                 ? Way::flat_all_reduce
                 : Way::split_all_reduce;
    case Operation::all_gather:
      if (call.in.count == 0) return Way::nothing;
      return in_place ? Way::in_place_all_gather : Way::all_gather;
    case Operation::reduce_scatter:
      if (call.out.count == 0) return Way::nothing;
      return in_place ? Way::in_place_reduce_scatter : Way::reduce_scatter;
    case Operation::all_to_all:
      if (call.in.count == 0) return Way::nothing;
      return in_place ? Way::in_place_all_to_all : Way::all_to_all;
    case Operation::reduce:
      return call.in.count == 0 ? Way::nothing : Way::reduce;
    case Operation::gather:
      return call.in.count == 0 ? Way::nothing : Way::gather;
    case Operation::scatter:
      return call.out.count == 0 ? Way::nothing : Way::scatter;
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      break;  // can() says no
  }
  return Way::nothing;
}

void Engine::plan(Progress& p) const {
  const auto in_pieces = [&](std::int64_t count, std::size_t bytes_each) {
    p.piece = static_cast<std::int64_t>(slot_bytes_ / bytes_each);
    p.steps = static_cast<std::uint64_t>((count + p.piece - 1) / p.piece);
  };
  switch (p.way) {
    case Way::nothing:
      p.steps = 0;
      return;
    case Way::barrier:
    case Way::flat_all_reduce:
      p.piece = p.call->out.count;
      p.steps = 1;
      return;
    case Way::broadcast:
      return in_pieces(p.call->out.count, size_of(p.call->out.type));
    case Way::split_all_reduce:
      in_pieces(p.call->out.count, size_of(p.call->out.type));
      p.steps *= 2;
      return;
    case Way::all_gather:
    case Way::reduce:
    case Way::gather:
      return in_pieces(p.call->in.count, size_of(p.call->in.type));
    case Way::reduce_scatter:
    case Way::scatter:
      return in_pieces(p.call->out.count,
                       size_of(p.call->out.type) * static_cast<std::size_t>(size_));
    case Way::all_to_all:
      return in_pieces(p.call->in.count / size_,
                       size_of(p.call->in.type) * static_cast<std::size_t>(size_));
    case Way::in_place_all_reduce:
    case Way::in_place_broadcast:
    case Way::in_place_all_gather:
    case Way::in_place_reduce_scatter:
    case Way::in_place_all_to_all:
      p.steps = 2;
      return;
  }
}

// Elements (of each block) that step i carries, and with which it begins.
std::int64_t Engine::piece_at(const Progress& p, std::uint64_t i) const {
  return static_cast<std::int64_t>(i) * p.piece;
}

std::size_t Engine::payload_bytes(const Progress& p, std::uint64_t i) const {
  const auto count = [&](std::int64_t whole, std::uint64_t step) {
    return static_cast<std::size_t>(std::min(p.piece, whole - piece_at(p, step)));
  };
  switch (p.way) {
    case Way::nothing:
    case Way::barrier:
      return 0;
    case Way::broadcast:
    case Way::flat_all_reduce:
      return count(p.call->out.count, i) * size_of(p.call->out.type);
    case Way::split_all_reduce:  // every second step only says that the shares are there
      return count(p.call->out.count, i / 2) * size_of(p.call->out.type);
    case Way::all_gather:
    case Way::reduce:
    case Way::gather:
      return count(p.call->in.count, i) * size_of(p.call->in.type);
    case Way::reduce_scatter:
    case Way::scatter:
      return count(p.call->out.count, i) * size_of(p.call->out.type) *
             static_cast<std::size_t>(size_);
    case Way::all_to_all:
      return count(p.call->in.count / size_, i) * size_of(p.call->in.type) *
             static_cast<std::size_t>(size_);
    case Way::in_place_all_reduce:
    case Way::in_place_broadcast:
    case Way::in_place_all_gather:
    case Way::in_place_reduce_scatter:
    case Way::in_place_all_to_all:
      return sizeof(Offsets);
  }
  return 0;
}

// In blocks of whole cache lines, so that no two members write to one.
Engine::Share Engine::share_of(int member, std::int64_t count, DataType type) const {
  const auto per_line = static_cast<std::int64_t>(64 / size_of(type));
  const std::int64_t lines = (count + per_line - 1) / per_line;
  const auto edge = [&](std::int64_t k) { return std::min(count, lines * k / size_ * per_line); };
  const std::int64_t begin = edge(member);
  return {begin, edge(member + 1) - begin};
}

void Engine::publish(Progress& p) {
  const Call& c = *p.call;
  const Area& mine = areas_[static_cast<std::size_t>(self_)];
  const std::uint64_t i = p.published;
  const std::uint64_t step = p.first + i;
  const std::size_t bytes = payload_bytes(p, i);
  std::byte* to = mine.payload(step, bytes);
  // One piece of each block, one after the other.
  const auto blocks = [&] {
    const std::size_t block = bytes / static_cast<std::size_t>(size_);
    const std::int64_t blocks_apart = c.in.count / size_;
    for (int k = 0; k < size_; ++k)
      copy_bytes(to + static_cast<std::size_t>(k) * block,
                 c.in.slice(k * blocks_apart + piece_at(p, i), 0).data, block);
  };
  switch (p.way) {
    case Way::nothing:
    case Way::barrier:
      break;
    case Way::broadcast:
      if (c.root.value() == self_) copy_bytes(to, c.out.slice(piece_at(p, i), 0).data, bytes);
      break;
    case Way::flat_all_reduce:
    case Way::all_gather:
      copy_bytes(to, c.in.slice(piece_at(p, i), 0).data, bytes);
      break;
    case Way::split_all_reduce:
      if (i % 2 == 0) copy_bytes(to, c.in.slice(piece_at(p, i / 2), 0).data, bytes);
      break;
    case Way::reduce:
    case Way::gather:
      if (c.root.value() != self_) copy_bytes(to, c.in.slice(piece_at(p, i), 0).data, bytes);
      break;
    case Way::reduce_scatter:
    case Way::all_to_all:
      blocks();
      break;
    case Way::scatter:
      if (c.root.value() == self_) blocks();
      break;
    case Way::in_place_all_gather:
      if (i == 0)
        copy_bytes(c.out.slice(self_ * c.in.count, 0).data, c.in.data,
                   static_cast<std::size_t>(c.in.bytes()));
      [[fallthrough]];
    case Way::in_place_all_reduce:
    case Way::in_place_broadcast:
    case Way::in_place_reduce_scatter:
    case Way::in_place_all_to_all:
      if (i == 0) publish_offsets(p, step);
      break;
  }
  mine.header(step).step.store(step, std::memory_order_release);
  ++p.published;
}

void Engine::read(Progress& p) {
  const Call& c = *p.call;
  const std::uint64_t i = p.read;
  const std::uint64_t step = p.first + i;
  const std::size_t bytes = payload_bytes(p, i);
  const auto self = static_cast<std::size_t>(self_);
  const auto payload = [&](int member, std::uint64_t at) {
    return areas_[static_cast<std::size_t>(member)].payload(at, bytes);
  };
  switch (p.way) {
    case Way::nothing:
    case Way::barrier:
      return;
    case Way::broadcast:
      if (c.root.value() != self_)
        copy_bytes(c.out.slice(piece_at(p, i), 0).data,
                   payload(static_cast<int>(c.root.value()), step), bytes);
      return;
    case Way::flat_all_reduce:
      for (int k = 0; k < size_; ++k)
        sources_[static_cast<std::size_t>(k)] = k == self_ ? c.in.data : payload(k, step);
      return detail::reduce(c.out.type, c.reduction, c.out.data, sources_.data(), size_,
                            c.out.count);
    case Way::split_all_reduce: {
      const auto count = static_cast<std::int64_t>(bytes / size_of(c.out.type));
      if (i % 2 ==
          0) {  // the own share of everyone's payload becomes, in the own payload, the result
        const Share share = share_of(self_, count, c.out.type);
        const auto offset = static_cast<std::size_t>(share.begin) * size_of(c.out.type);
        for (int k = 0; k < size_; ++k)
          sources_[static_cast<std::size_t>(k)] = payload(k, step) + offset;
        return detail::reduce(c.out.type, c.reduction, payload(self_, step) + offset,
                              sources_.data(), size_, share.count);
      }
      std::byte* out = c.out.slice(piece_at(p, i / 2), 0).data;
      for (int k = 0; k < size_; ++k) {
        const Share share = share_of(k, count, c.out.type);
        const auto offset = static_cast<std::size_t>(share.begin) * size_of(c.out.type);
        copy_bytes(out + offset, payload(k, step - 1) + offset,
                   static_cast<std::size_t>(share.count) * size_of(c.out.type));
      }
      return;
    }
    case Way::all_gather:
      for (int k = 0; k < size_; ++k)
        copy_bytes(c.out.slice(k * c.in.count + piece_at(p, i), 0).data,
                   k == self_ ? c.in.slice(piece_at(p, i), 0).data : payload(k, step), bytes);
      return;
    case Way::reduce_scatter: {
      const std::size_t block = bytes / static_cast<std::size_t>(size_);
      for (int k = 0; k < size_; ++k)
        sources_[static_cast<std::size_t>(k)] = payload(k, step) + self * block;
      return detail::reduce(c.out.type, c.reduction, c.out.slice(piece_at(p, i), 0).data,
                            sources_.data(), size_,
                            static_cast<std::int64_t>(block / size_of(c.out.type)));
    }
    case Way::all_to_all: {
      const std::size_t block = bytes / static_cast<std::size_t>(size_);
      const std::int64_t apart = c.out.count / size_;
      for (int k = 0; k < size_; ++k)
        copy_bytes(c.out.slice(k * apart + piece_at(p, i), 0).data, payload(k, step) + self * block,
                   block);
      return;
    }
    case Way::reduce:
      if (c.root.value() != self_) return;
      for (int k = 0; k < size_; ++k)
        sources_[static_cast<std::size_t>(k)] =
            k == self_ ? c.in.slice(piece_at(p, i), 0).data : payload(k, step);
      return detail::reduce(c.in.type, c.reduction, c.out.slice(piece_at(p, i), 0).data,
                            sources_.data(), size_,
                            static_cast<std::int64_t>(bytes / size_of(c.in.type)));
    case Way::gather:
      if (c.root.value() != self_) return;
      for (int k = 0; k < size_; ++k)
        copy_bytes(c.out.slice(k * c.in.count + piece_at(p, i), 0).data,
                   k == self_ ? c.in.slice(piece_at(p, i), 0).data : payload(k, step), bytes);
      return;
    case Way::scatter: {
      const std::size_t block = bytes / static_cast<std::size_t>(size_);
      const int root = static_cast<int>(c.root.value());
      copy_bytes(c.out.slice(piece_at(p, i), 0).data,
                 root == self_ ? c.in.slice(self_ * c.out.count + piece_at(p, i), 0).data
                               : payload(root, step) + self * block,
                 block);
      return;
    }
    case Way::in_place_all_reduce:
    case Way::in_place_broadcast:
    case Way::in_place_all_gather:
    case Way::in_place_reduce_scatter:
    case Way::in_place_all_to_all:
      if (i == 0) read_in_place(p, step);
      return;
  }
}

}  // namespace rankmesh::shm
