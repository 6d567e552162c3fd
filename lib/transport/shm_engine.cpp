#include "detail/shm_engine.hpp"

#include <algorithm>
#include <cstring>

#include "detail/reduce_kernels.hpp"

namespace rankmesh::shm {
namespace {

std::size_t width(DataType type) { return size_of(type); }

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

// Where in their windows a member's buffers begin; published instead of the data.
struct Offsets {
  std::uint64_t in, out;
};

}  // namespace

Engine::Engine(std::vector<std::byte*> areas, std::vector<std::int32_t> locals, int self,
               std::size_t slot_bytes, Limits limits, const void* group)
    : group_{group},
      locals_{std::move(locals)},
      self_{self},
      size_{static_cast<int>(areas.size())},
      slot_bytes_{slot_bytes},
      limits_{limits},
      sources_(areas.size()) {
  for (std::byte* memory : areas) areas_.emplace_back(memory, slot_bytes);
}

bool Engine::can(const Call& call) const {
  if (call.in.kind != MemoryKind::host || call.out.kind != MemoryKind::host || !call.is_plain()) return false;
  // Of every block one element at least must fit into a slot.
  const auto blocks_fit = [&] {
    return width(call.in.type) * static_cast<std::size_t>(size_) <= slot_bytes_;
  };
  switch (call.operation) {
    case Operation::barrier:
    case Operation::broadcast:
    case Operation::all_gather:
    case Operation::gather:
      return true;
    case Operation::all_reduce:
    case Operation::reduce:
      return detail::can_reduce(call.in.type);
    case Operation::reduce_scatter:
      return detail::can_reduce(call.in.type) && blocks_fit();
    case Operation::all_to_all:
    case Operation::scatter:
      return blocks_fit();
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      return false;
  }
  return false;
}

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

// Depends only on what all members pass alike.
Way Engine::way_of(const Call& call) const {
  const bool in_place =
      std::max(call.in.bytes(), call.out.bytes()) >= limits_.symmetric_bytes && is_in_place(call, group_);
  switch (call.operation) {
    case Operation::barrier:
      return Way::barrier;
    case Operation::broadcast:
      if (call.out.count == 0) return Way::nothing;
      return in_place ? Way::in_place_broadcast : Way::broadcast;
    case Operation::all_reduce:
      if (call.out.count == 0) return Way::nothing;
      if (in_place) return Way::in_place_all_reduce;
      return call.out.bytes() <= std::min(limits_.flat_bytes, static_cast<std::int64_t>(slot_bytes_))
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
      return in_pieces(p.call->out.count, width(p.call->out.type));
    case Way::split_all_reduce:
      in_pieces(p.call->out.count, width(p.call->out.type));
      p.steps *= 2;
      return;
    case Way::all_gather:
    case Way::reduce:
    case Way::gather:
      return in_pieces(p.call->in.count, width(p.call->in.type));
    case Way::reduce_scatter:
    case Way::scatter:
      return in_pieces(p.call->out.count, width(p.call->out.type) * static_cast<std::size_t>(size_));
    case Way::all_to_all:
      return in_pieces(p.call->in.count / size_, width(p.call->in.type) * static_cast<std::size_t>(size_));
    case Way::in_place_all_reduce:
    case Way::in_place_broadcast:
    case Way::in_place_all_gather:
    case Way::in_place_reduce_scatter:
    case Way::in_place_all_to_all:
      p.steps = 2;
      return;
  }
}

void Engine::begin(Progress& p, const Call& call) {
  p.call = &call;
  p.way = way_of(call);
  plan(p);
  if (p.steps == 0) return;
  p.first = next_step_;
  next_step_ += p.steps;
  enqueue(p);
}

void Engine::enqueue(Progress& p) {
  if (last_ != nullptr)
    last_->next = &p;
  else
    reading_ = &p;
  last_ = &p;
  if (publishing_ == nullptr && p.published < p.steps) publishing_ = &p;
}

bool Engine::run_small(Progress& p, const Call& call, int looks) {
  const auto bytes = static_cast<std::size_t>(call.out.bytes());
  const bool sends = call.operation != Operation::broadcast || call.root.value() == self_;
  switch (call.operation) {
    case Operation::barrier:
      break;
    case Operation::all_reduce:
      if (call.out.bytes() > limits_.flat_bytes) return false;
      break;
    case Operation::broadcast:
      if (bytes > slot_bytes_) return false;
      break;
    default:
      return false;
  }
  const bool is_large = call.out.bytes() >= limits_.symmetric_bytes && is_in_place(call, group_);
  const std::uint64_t step = next_step_;
  if (reading_ != nullptr || is_large || !may_overwrite(step, bytes)) return false;
  const bool is_barrier = call.operation == Operation::barrier;
  if (bytes == 0 && !is_barrier) {
    p.steps = 0;
    return true;
  }
  ++next_step_;
  const Area& mine = areas_[static_cast<std::size_t>(self_)];
  const std::byte* const from = call.operation == Operation::broadcast ? call.out.data : call.in.data;
  if (sends) {
    copy_bytes(mine.payload(step, bytes), from, bytes);
    mine.header(step).step.store(step, std::memory_order_release);
  }
  const auto has = [&](int k) {
    return areas_[static_cast<std::size_t>(k)].header(step).step.load(std::memory_order_acquire) >= step;
  };
  const bool is_broadcast = call.operation == Operation::broadcast;
  const int root = static_cast<int>(call.root.value());
  int k = is_broadcast ? root : 0;
  const int end = is_broadcast ? root + 1 : size_;
  for (; k < end; ++k)
    while (k != self_ && !has(k)) {
      if (--looks < 0) {  // as if it had been begun like any other
        p.call = &call;
        p.way = is_barrier ? Way::barrier : is_broadcast ? Way::broadcast : Way::flat_all_reduce;
        p.piece = call.out.count;
        p.first = step;
        p.steps = p.published = 1;
        enqueue(p);
        return false;
      }
      pause();
    }
  if (is_broadcast) {
    if (!sends) copy_bytes(call.out.data, areas_[static_cast<std::size_t>(root)].payload(step, bytes), bytes);
  } else if (!is_barrier) {
    for (int m = 0; m < size_; ++m)
      sources_[static_cast<std::size_t>(m)] =
          m == self_ ? call.in.data : areas_[static_cast<std::size_t>(m)].payload(step, bytes);
    detail::reduce(call.out.type, call.reduction, call.out.data, sources_.data(), size_, call.out.count);
  }
  mine.done().store(step, std::memory_order_release);
  p.steps = 0;
  return true;
}

void Engine::advance() {
  bool moved = true;
  while (moved && reading_ != nullptr) {
    moved = false;
    while (publishing_ != nullptr && may_publish(*publishing_)) {
      publish(*publishing_);
      moved = true;
      if (publishing_->published == publishing_->steps) publishing_ = publishing_->next;
    }
    while (reading_ != nullptr && reading_->read < reading_->published && others_have_published(*reading_)) {
      Progress& p = *reading_;
      read(p);
      moved = true;
      p.seen = 0;
      areas_[static_cast<std::size_t>(self_)].done().store(p.first + p.read, std::memory_order_release);
      // The owner may free it from here on.
      Progress* const next = p.next;
      if (++p.read != p.steps) continue;
      reading_ = next;
      if (next == nullptr) last_ = nullptr;
    }
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
      return count(p.call->out.count, i) * width(p.call->out.type);
    case Way::split_all_reduce:  // every second step only says that the shares are there
      return count(p.call->out.count, i / 2) * width(p.call->out.type);
    case Way::all_gather:
    case Way::reduce:
    case Way::gather:
      return count(p.call->in.count, i) * width(p.call->in.type);
    case Way::reduce_scatter:
    case Way::scatter:
      return count(p.call->out.count, i) * width(p.call->out.type) * static_cast<std::size_t>(size_);
    case Way::all_to_all:
      return count(p.call->in.count / size_, i) * width(p.call->in.type) * static_cast<std::size_t>(size_);
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
  const auto per_line = static_cast<std::int64_t>(64 / width(type));
  const std::int64_t lines = (count + per_line - 1) / per_line;
  const auto edge = [&](std::int64_t k) { return std::min(count, lines * k / size_ * per_line); };
  const std::int64_t begin = edge(member);
  return {begin, edge(member + 1) - begin};
}

bool Engine::may_publish(const Progress& p) {
  const std::uint64_t i = p.published;
  switch (p.way) {
    case Way::split_all_reduce:
      if (i % 2 == 1 && p.read < i) return false;  // the own share is not reduced yet
      break;
    case Way::in_place_all_reduce:
    case Way::in_place_broadcast:
    case Way::in_place_all_gather:
    case Way::in_place_reduce_scatter:
    case Way::in_place_all_to_all:
      if (i == 1 && p.read < 1) return false;
      break;
    case Way::nothing:
    case Way::barrier:
    case Way::broadcast:
    case Way::flat_all_reduce:
    case Way::all_gather:
    case Way::reduce_scatter:
    case Way::all_to_all:
    case Way::reduce:
    case Way::gather:
    case Way::scatter:
      break;
  }
  return may_overwrite(p.first + i, payload_bytes(p, i));
}

bool Engine::may_overwrite(std::uint64_t step, std::size_t bytes) {
  // What this step overwrites was published `ahead` steps ago, and read until the step after that.
  const std::uint64_t ahead = ahead_of(bytes);
  if (step < ahead || all_done_ >= step - ahead + 1) return true;
  std::uint64_t lowest = step;
  for (const Area& area : areas_) lowest = std::min(lowest, area.done().load(std::memory_order_acquire));
  all_done_ = lowest;
  return all_done_ >= step - ahead + 1;
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

bool Engine::others_have_published(Progress& p) {
  const std::uint64_t step = p.first + p.read;
  const auto has = [&](int member) {
    return areas_[static_cast<std::size_t>(member)].header(step).step.load(std::memory_order_acquire) >= step;
  };
  const int root = static_cast<int>(p.call->root.value());
  if (p.way == Way::broadcast || p.way == Way::scatter) return root == self_ || has(root);
  if ((p.way == Way::reduce || p.way == Way::gather) && root != self_) return true;
  if (p.way == Way::in_place_broadcast) {
    if (p.read == 0 || root != self_) return root == self_ || p.read == 1 || has(root);
  }
  for (; p.seen < size_; ++p.seen)
    if (!has(p.seen)) return false;
  return true;
}

// Where a member's buffer of this operation begins, in the window that all have.
std::byte* Engine::part(const SymmetricWindow& window, int member, std::uint64_t step, bool of_out) const {
  Offsets offsets{};
  const auto k = static_cast<std::size_t>(member);
  std::memcpy(&offsets, areas_[k].payload(step, sizeof offsets), sizeof offsets);
  return window.part(locals_[k]) + (of_out ? offsets.out : offsets.in);
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
        copy_bytes(c.out.slice(piece_at(p, i), 0).data, payload(static_cast<int>(c.root.value()), step),
                   bytes);
      return;
    case Way::flat_all_reduce:
      for (int k = 0; k < size_; ++k)
        sources_[static_cast<std::size_t>(k)] = k == self_ ? c.in.data : payload(k, step);
      return detail::reduce(c.out.type, c.reduction, c.out.data, sources_.data(), size_, c.out.count);
    case Way::split_all_reduce: {
      const auto count = static_cast<std::int64_t>(bytes / width(c.out.type));
      if (i % 2 == 0) {  // the own share of everyone's payload becomes, in the own payload, the result
        const Share share = share_of(self_, count, c.out.type);
        const auto offset = static_cast<std::size_t>(share.begin) * width(c.out.type);
        for (int k = 0; k < size_; ++k) sources_[static_cast<std::size_t>(k)] = payload(k, step) + offset;
        return detail::reduce(c.out.type, c.reduction, payload(self_, step) + offset, sources_.data(), size_,
                              share.count);
      }
      std::byte* out = c.out.slice(piece_at(p, i / 2), 0).data;
      for (int k = 0; k < size_; ++k) {
        const Share share = share_of(k, count, c.out.type);
        const auto offset = static_cast<std::size_t>(share.begin) * width(c.out.type);
        copy_bytes(out + offset, payload(k, step - 1) + offset,
                   static_cast<std::size_t>(share.count) * width(c.out.type));
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
      for (int k = 0; k < size_; ++k) sources_[static_cast<std::size_t>(k)] = payload(k, step) + self * block;
      return detail::reduce(c.out.type, c.reduction, c.out.slice(piece_at(p, i), 0).data, sources_.data(),
                            size_, static_cast<std::int64_t>(block / width(c.out.type)));
    }
    case Way::all_to_all: {
      const std::size_t block = bytes / static_cast<std::size_t>(size_);
      const std::int64_t apart = c.out.count / size_;
      for (int k = 0; k < size_; ++k)
        copy_bytes(c.out.slice(k * apart + piece_at(p, i), 0).data, payload(k, step) + self * block, block);
      return;
    }
    case Way::reduce:
      if (c.root.value() != self_) return;
      for (int k = 0; k < size_; ++k)
        sources_[static_cast<std::size_t>(k)] =
            k == self_ ? c.in.slice(piece_at(p, i), 0).data : payload(k, step);
      return detail::reduce(c.in.type, c.reduction, c.out.slice(piece_at(p, i), 0).data, sources_.data(),
                            size_, static_cast<std::int64_t>(bytes / width(c.in.type)));
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

void Engine::read_in_place(Progress& p, std::uint64_t step) {
  const Call& c = *p.call;
  const std::size_t one = width(c.out.type);
  const auto block_bytes = static_cast<std::size_t>(c.in.bytes());
  switch (p.way) {
    case Way::in_place_all_reduce: {
      // The own share of everyone's input goes to everyone's output, in blocks that stay in the cache.
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
      return detail::reduce(c.out.type, c.reduction, c.out.data, sources_.data(), size_, c.out.count);
    }
    case Way::in_place_all_to_all: {
      const std::size_t block = block_bytes / static_cast<std::size_t>(size_);
      for (int n = 0; n < size_; ++n) {
        const int k = (self_ + n) % size_;
        copy_bytes(c.out.data + static_cast<std::size_t>(k) * block,
                   part(*c.in.window, k, step, false) + static_cast<std::size_t>(self_) * block, block);
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
