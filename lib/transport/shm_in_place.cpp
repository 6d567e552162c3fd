// The ways in symmetric memory: members publish where their buffers lie, and read each other's.
#include <algorithm>
#include <cstring>

#include "detail/reduce_kernels.hpp"
#include "detail/shm_engine.hpp"

namespace rankmesh::shm {

bool is_in_place(const Call& call, const void* group) {
  const auto symmetric = [&](const auto& buffer) {
    return buffer.window != nullptr && buffer.window->serves(group);
  };
  if (!call.is_plain()) return false;
  switch (call.operation) {
    case Operation::broadcast:
    case Operation::all_gather:
      return symmetric(call.out);
    case Operation::all_reduce:
      return symmetric(call.in) && symmetric(call.out);
    case Operation::reduce_scatter:
      return symmetric(call.in);
    case Operation::all_to_all:
      return symmetric(call.in) && call.in.data != call.out.data;
    case Operation::barrier:
    case Operation::reduce:
    case Operation::gather:
    case Operation::scatter:
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      return false;
  }
  return false;
}

void Engine::publish_offsets(const Progress& p, std::uint64_t step) {
  Offsets offsets{};
  if (p.call->in.window != nullptr)
    offsets.in = static_cast<std::uint64_t>(p.call->in.data - p.call->in.window->own());
  if (p.call->out.window != nullptr)
    offsets.out = static_cast<std::uint64_t>(p.call->out.data - p.call->out.window->own());
  std::memcpy(areas_[static_cast<std::size_t>(self_)].payload(step, sizeof offsets), &offsets,
              sizeof offsets);
}

// Where a member's buffer of this operation begins, in the window that all have.
std::byte* Engine::part(const SymmetricWindow& window, int member, std::uint64_t step,
                        bool of_out) const {
  Offsets offsets{};
  const auto k = static_cast<std::size_t>(member);
  std::memcpy(&offsets, areas_[k].payload(step, sizeof offsets), sizeof offsets);
  return window.part(locals_[k]) + (of_out ? offsets.out : offsets.in);
}

void Engine::read_in_place(Progress& p, std::uint64_t step) {
  const Call& c = *p.call;
  const std::size_t one = size_of(c.out.type);
  const auto block_bytes = static_cast<std::size_t>(c.in.bytes());
  switch (p.way) {
    case Way::in_place_all_reduce: {
      // The own share of everyone's input goes to everyone's output, in blocks that stay in the
      // cache.
      const Share share = share_of(self_, c.out.count, c.out.type);
      const auto block = static_cast<std::int64_t>(8192 / one);
      for (std::int64_t at = share.begin; at < share.begin + share.count; at += block) {
        const std::int64_t count = std::min(block, share.begin + share.count - at);
        const auto offset = static_cast<std::size_t>(at) * one;
        for (int k = 0; k < size_; ++k)
          sources_[static_cast<std::size_t>(k)] = part(*c.in.window, k, step, false) + offset;
        std::byte* mine = c.out.data + offset;
        detail::reduce(c.out.type, c.reduction, mine, sources_.data(), size_, count);
        for (int k = 0; k < size_; ++k)
          if (k != self_)
            copy_bytes(part(*c.out.window, k, step, true) + offset, mine,
                       static_cast<std::size_t>(count) * one);
      }
      return;
    }
    case Way::in_place_broadcast:
      if (const int root = static_cast<int>(c.root.value()); root != self_)
        copy_bytes(c.out.data, part(*c.out.window, root, step, true),
                   static_cast<std::size_t>(c.out.bytes()));
      return;
    case Way::in_place_all_gather:
      for (int n = 1; n < size_; ++n) {  // everybody begins with another one
        const int k = (self_ + n) % size_;
        const auto offset = static_cast<std::size_t>(k) * block_bytes;
        copy_bytes(c.out.data + offset, part(*c.out.window, k, step, true) + offset, block_bytes);
      }
      return;
    case Way::in_place_reduce_scatter: {
      const auto offset = static_cast<std::size_t>(self_ * c.out.count) * one;
      for (int k = 0; k < size_; ++k)
        sources_[static_cast<std::size_t>(k)] = part(*c.in.window, k, step, false) + offset;
      return detail::reduce(c.out.type, c.reduction, c.out.data, sources_.data(), size_,
                            c.out.count);
    }
    case Way::in_place_all_to_all: {
      const std::size_t block = block_bytes / static_cast<std::size_t>(size_);
      for (int n = 0; n < size_; ++n) {
        const int k = (self_ + n) % size_;
        copy_bytes(c.out.data + static_cast<std::size_t>(k) * block,
                   part(*c.in.window, k, step, false) + static_cast<std::size_t>(self_) * block,
                   block);
      }
      return;
    }
    case Way::nothing:
    case Way::barrier:
    case Way::broadcast:
    case Way::flat_all_reduce:
    case Way::split_all_reduce:
    case Way::all_gather:
    case Way::reduce_scatter:
    case Way::all_to_all:
    case Way::reduce:
    case Way::gather:
    case Way::scatter:
      return;
  }
}

}  // namespace rankmesh::shm
