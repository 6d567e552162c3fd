// SPDX-License-Identifier: BSD-3-Clause
// The collectives as the cells make them: on memory of the cell, blocking or with _async and
// wait().
#pragma once

#include "faults/cell.hpp"

namespace faults {

inline constexpr RankInGroup first_member{0};
inline RankInGroup last_member(const Cell& c) { return RankInGroup{c.size - 1}; }
inline std::size_t members(const Cell& c) { return static_cast<std::size_t>(c.size); }

/// Runs the blocking form, or starts the asynchronous form and waits for it.
template <class Blocking, class Start>
void issue(const Cell& c, Blocking&& blocking, Start&& start) {
  if (c.settings.is_async)
    start().wait();
  else
    blocking();
}

template <class T = float>
void all_reduce(Cell& c, std::size_t n, ReduceOp op = ReduceOp::sum) {
  const auto v = c.memory<T>(n);
  issue(
      c, [&] { c.group->all_reduce(v, op); }, [&] { return c.group->all_reduce_async(v, op); });
}
template <class T = float>
void broadcast(Cell& c, std::size_t n, RankInGroup root = first_member) {
  const auto v = c.memory<T>(n);
  issue(
      c, [&] { c.group->broadcast(v, root); }, [&] { return c.group->broadcast_async(v, root); });
}
template <class T = float>
void reduce(Cell& c, std::size_t n, RankInGroup root = first_member, ReduceOp op = ReduceOp::sum) {
  const auto in = c.memory<T>(n), out = c.memory<T>(n);
  issue(
      c, [&] { c.group->reduce(in, out, root, op); },
      [&] { return c.group->reduce_async(in, out, root, op); });
}
template <class T = float>
void all_gather(Cell& c, std::size_t block) {
  const auto in = c.memory<T>(block), out = c.memory<T>(block * members(c));
  issue(
      c, [&] { c.group->all_gather(in, out); }, [&] { return c.group->all_gather_async(in, out); });
}
template <class T = float>
void gather(Cell& c, std::size_t block, RankInGroup root = first_member) {
  const auto in = c.memory<T>(block), out = c.memory<T>(block * members(c));
  issue(
      c, [&] { c.group->gather(in, out, root); },
      [&] { return c.group->gather_async(in, out, root); });
}
template <class T = float>
void scatter(Cell& c, std::size_t block, RankInGroup root = first_member) {
  const auto in = c.memory<T>(block * members(c)), out = c.memory<T>(block);
  issue(
      c, [&] { c.group->scatter(in, out, root); },
      [&] { return c.group->scatter_async(in, out, root); });
}
template <class T = float>
void reduce_scatter(Cell& c, std::size_t block, ReduceOp op = ReduceOp::sum) {
  const auto in = c.memory<T>(block * members(c)), out = c.memory<T>(block);
  issue(
      c, [&] { c.group->reduce_scatter(in, out, op); },
      [&] { return c.group->reduce_scatter_async(in, out, op); });
}
template <class T = float>
void all_to_all(Cell& c, std::size_t block) {
  const auto in = c.memory<T>(block * members(c)), out = c.memory<T>(block * members(c));
  issue(
      c, [&] { c.group->all_to_all(in, out); }, [&] { return c.group->all_to_all_async(in, out); });
}
template <class T = float>
void scan(Cell& c, std::size_t n, ReduceOp op = ReduceOp::sum) {
  const auto v = c.memory<T>(n);
  issue(
      c, [&] { c.group->scan(v, op); }, [&] { return c.group->scan_async(v, op); });
}
inline void barrier(Cell& c) {
  issue(
      c, [&] { c.group->barrier(); }, [&] { return c.group->barrier_async(); });
}

/// Returns "12 x float32", as the messages describe a call.
inline std::string elements(std::size_t count, std::string_view type = "float32") {
  return std::to_string(count) + " x " + std::string{type};
}

}  // namespace faults
