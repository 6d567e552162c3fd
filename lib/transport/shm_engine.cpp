#include "detail/shm_engine.hpp"

#include <algorithm>

#include "detail/reduce_kernels.hpp"

namespace rankmesh::shm {

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
  if (call.in.kind != MemoryKind::host || call.out.kind != MemoryKind::host || !call.is_plain())
    return false;
  // Of every block one element at least must fit into a slot.
  const auto blocks_fit = [&] {
    return size_of(call.in.type) * static_cast<std::size_t>(size_) <= slot_bytes_;
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
  const std::byte* const from =
      call.operation == Operation::broadcast ? call.out.data : call.in.data;
  if (sends) {
    copy_bytes(mine.payload(step, bytes), from, bytes);
    mine.header(step).step.store(step, std::memory_order_release);
  }
  const auto has = [&](int k) {
    return areas_[static_cast<std::size_t>(k)].header(step).step.load(std::memory_order_acquire) >=
           step;
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
    if (!sends)
      copy_bytes(call.out.data, areas_[static_cast<std::size_t>(root)].payload(step, bytes), bytes);
  } else if (!is_barrier) {
    for (int m = 0; m < size_; ++m)
      sources_[static_cast<std::size_t>(m)] =
          m == self_ ? call.in.data : areas_[static_cast<std::size_t>(m)].payload(step, bytes);
    detail::reduce(call.out.type, call.reduction, call.out.data, sources_.data(), size_,
                   call.out.count);
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
    while (reading_ != nullptr && reading_->read < reading_->published &&
           others_have_published(*reading_)) {
      Progress& p = *reading_;
      read(p);
      moved = true;
      p.seen = 0;
      areas_[static_cast<std::size_t>(self_)].done().store(p.first + p.read,
                                                           std::memory_order_release);
      // The owner may free it from here on.
      Progress* const next = p.next;
      if (++p.read != p.steps) continue;
      reading_ = next;
      if (next == nullptr) last_ = nullptr;
    }
  }
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
  for (const Area& area : areas_)
    lowest = std::min(lowest, area.done().load(std::memory_order_acquire));
  all_done_ = lowest;
  return all_done_ >= step - ahead + 1;
}

bool Engine::others_have_published(Progress& p) {
  const std::uint64_t step = p.first + p.read;
  const auto has = [&](int member) {
    return areas_[static_cast<std::size_t>(member)].header(step).step.load(
               std::memory_order_acquire) >= step;
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

}  // namespace rankmesh::shm
