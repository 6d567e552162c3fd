// SPDX-License-Identifier: BSD-3-Clause
#include "faults/cell.hpp"

#include <algorithm>
#include <cstdio>

namespace faults {

std::string_view to_string(Expected expected) {
  switch (expected) {
    case Expected::named:
      return "named";
    case Expected::at_close:
      return "at_close";
    case Expected::told:
      return "told";
    case Expected::usage:
      return "usage";
    case Expected::pair:
      return "pair";
    case Expected::works:
      return "works";
    case Expected::works_or_named:
      return "works_or_named";
  }
  return "";
}

Cell::Cell(const Settings& settings_, Outcome& outcome_, std::int64_t bytes_)
    : settings{settings_}, outcome{outcome_}, bytes{bytes_} {
  options.timeout = Deadline::Duration{settings.timeout};
  if (settings.deadline > 0) options.deadline = Deadline::Duration{settings.deadline};
}

std::size_t Cell::block() const {
  return std::max<std::size_t>(floats() / static_cast<std::size_t>(size), 2);
}

void Cell::expect(std::vector<std::string> on_odd, std::vector<std::string> elsewhere) const {
  outcome.odd = std::move(on_odd);
  outcome.good = std::move(elsewhere);
}
void Cell::expect(std::string_view operation) const {
  const std::string words{operation};
  expect({words}, {words});
}

void Cell::wrong(std::string_view what) const {
  if (outcome.wrong.empty()) outcome.wrong = what;
}

void Cell::good(GroupCoordinator& in, std::size_t count, int salt) {
  const auto v = memory<float>(count);
  const auto value = [&](int of, std::size_t i) {
    return static_cast<float>(of + static_cast<int>(i % 7) + salt);
  };
  for (std::size_t i = 0; i < count; ++i) v[i] = value(rank, i);
  if (settings.is_async)
    in.all_reduce_async(v).wait();
  else
    in.all_reduce(v);
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (std::int64_t member = 0; member < in.size(); ++member)
      sum += value(static_cast<int>(in.ranks().at(member).value()), i);
    if (v[i] != sum) return wrong(outcome.at);
  }
}

const Kinds& all_kinds() {
  static const Kinds all = [] {
    Kinds result;
    for (const auto& part :
         {counts(), blocks(), types(), roots(), other_operations(), orders(), forms(), spans(),
          messages(), dynamic_groups(), exchanges(), late_members(), checkpoints()})
      result.insert(result.end(), part.begin(), part.end());
    return result;
  }();
  return all;
}

const Kind* find_kind(std::string_view name) {
  const auto found = std::ranges::find(all_kinds(), name, &Kind::name);
  return found == all_kinds().end() ? nullptr : &*found;
}

void list_kinds() {
  for (const Kind& kind : all_kinds())
    std::printf("%s %s %d %s %s\n", kind.name.c_str(),
                std::string{to_string(kind.expected)}.c_str(), kind.min_ranks,
                kind.has_one_size ? "one_size" : "-", kind.needs_check ? "check" : "-");
}

namespace {

void run_steps(const Kind& kind, Cell& cell) {
  Mesh mesh{cell.world, kind.mesh, cell.options};
  cell.mesh = &mesh;
  cell.rank = static_cast<int>(mesh.rank().value());
  cell.size = static_cast<int>(mesh.size());
  cell.odd = cell.settings.odd < 0 ? cell.size - 1 : cell.settings.odd;
  cell.group = &mesh["tp"];
  cell.outcome.at = "warm-up";
  cell.good(4, 1);
  cell.group->barrier();
  cell.outcome.at = "fault";
  kind.fault(cell);
  cell.outcome.at = "good 1";
  cell.good(cell.good_count(), 2);
  cell.outcome.at = "good 2";
  cell.good(cell.good_count(), 3);
  cell.outcome.at = "close";
  mesh.close();
}

}  // namespace

Outcome outcome_of(const std::exception& error) {
  const auto* own = dynamic_cast<const Error*>(&error);
  Outcome result;
  result.text = own != nullptr ? own->message() : error.what();
  result.name = own != nullptr ? "Error" : "exception";
  if (dynamic_cast<const MismatchError*>(&error) != nullptr) result.name = "MismatchError";
  if (dynamic_cast<const TimeoutError*>(&error) != nullptr) result.name = "TimeoutError";
  if (dynamic_cast<const UsageError*>(&error) != nullptr) result.name = "UsageError";
  if (dynamic_cast<const ClosedError*>(&error) != nullptr) result.name = "ClosedError";
  if (dynamic_cast<const DataError*>(&error) != nullptr) result.name = "DataError";
  if (dynamic_cast<const mpi::MpiError*>(&error) != nullptr) result.name = "MpiError";
  return result;
}

void run_cell(const Kind& kind, const Settings& settings, std::int64_t bytes, MPI_Comm world,
              Outcome& outcome) {
  Cell cell{settings, outcome, bytes};
  cell.world = world;
  if (kind.name.ends_with("_duplicate")) cell.options.names["tp"].duplicates = {"x"};
  try {
    run_steps(kind, cell);
  } catch (const std::exception& error) {
    const Outcome failed = outcome_of(error);
    outcome.name = failed.name;
    outcome.text = failed.text;
    cell.leak();
  }
}

}  // namespace faults
