// SPDX-License-Identifier: BSD-3-Clause
// fault_cell KIND BYTES [OPTION...]       runs one cell of the fault matrix, and ends as any
// program does fault_cell --cells FILE [OPTION...]     runs the cells of the file (a line "KIND
// BYTES" for each), each on a mesh of its own fault_cell --list                       lists the
// kinds: name, expected end, fewest ranks, one_size or -, check or -
//
//   --deadline S   MeshOptions::deadline (default: none)
//   --timeout S    MeshOptions::timeout (default 3)
//   --limit S      a cell that lasts longer counts as hanging (default 9)
//   --async        makes the calls with _async and wait()
//   --odd RANK     the rank that makes the mistake (default: the last)
//   --check        sets RANKMESH_CHECK=1
//
// Every rank prints a line about each cell (report.hpp); scripts/fault-matrix starts this program
// and judges the lines.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "faults/cell.hpp"
#include "faults/hang_guard.hpp"
#include "faults/report.hpp"

using namespace faults;

namespace {

struct Item {
  const Kind* kind;
  std::int64_t bytes;
};

struct CommandLine {
  Settings settings;
  std::vector<Item> items;
  bool is_list = false, is_batch = false;
};

Item item_of(const std::string& kind, const std::string& bytes) {
  const Kind* found = find_kind(kind);
  if (found == nullptr) throw std::invalid_argument{"there is no kind '" + kind + "'"};
  return {found, std::stoll(bytes)};
}

CommandLine parse(int argc, char** argv) {
  CommandLine result;
  std::vector<std::string> words;
  unsetenv("RANKMESH_CHECK");  // it may be set for the other tests
  const std::vector<std::string> args(argv + 1, argv + argc);
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto value = [&] {
      if (++i >= args.size()) throw std::invalid_argument{args[i - 1] + " needs a value"};
      return args[i];
    };
    if (args[i] == "--deadline")
      result.settings.deadline = std::stod(value());
    else if (args[i] == "--timeout")
      result.settings.timeout = std::stod(value());
    else if (args[i] == "--limit")
      result.settings.limit = std::stod(value());
    else if (args[i] == "--odd")
      result.settings.odd = std::stoi(value());
    else if (args[i] == "--async")
      result.settings.is_async = true;
    else if (args[i] == "--check")
      setenv("RANKMESH_CHECK", "1", 1);
    else if (args[i] == "--list")
      result.is_list = true;
    else if (args[i] == "--cells") {
      result.is_batch = true;
      std::ifstream file{value()};
      for (std::string kind, bytes; file >> kind >> bytes;)
        result.items.push_back(item_of(kind, bytes));
    } else
      words.push_back(args[i]);
  }
  if (words.size() == 2) result.items.push_back(item_of(words[0], words[1]));
  if (result.items.empty() && !result.is_list) throw std::invalid_argument{"no cell is given"};
  return result;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Waits until all ranks have reported, without blocking in MPI: the cell may have left messages.
void meet(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  for (int is_done = 0; is_done == 0; usleep(200)) MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
}

// The cells meet on `comm`; each gets a duplicate of it, on which nothing is left of other cells.
void run_item(const Item& item, const Settings& settings, MPI_Comm comm) {
  Place place{.kind = item.kind->name, .bytes = item.bytes, .expected = item.kind->expected};
  MPI_Comm_rank(comm, &place.rank);
  MPI_Comm_size(comm, &place.ranks);
  place.odd = settings.odd < 0 ? place.ranks - 1 : settings.odd;
  Outcome outcome;
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &world);
  const auto start = std::chrono::steady_clock::now();
  {
    const HangGuard guard{settings.limit, [&] {
                            Outcome hung{outcome};
                            hung.name = "hung";
                            print_line(place, hung, seconds_since(start));
                          }};
    run_cell(*item.kind, settings, item.bytes, world, outcome);
    print_line(place, outcome, seconds_since(start));
  }
  const HangGuard guard{settings.limit + 1, [] {}};
  meet(comm);
}

}  // namespace

int main(int argc, char** argv) try {
  const CommandLine line = parse(argc, argv);
  if (line.is_list) return list_kinds(), 0;
  const mpi::Environment environment{argc, argv};
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (const Item& item : line.items) run_item(item, line.settings, comm);
  // Operations of several cells may be left in MPI: only a single cell shows how a program ends.
  if (line.is_batch) std::_Exit(0);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "fault_cell: %s\n", error.what());
  return 2;
}
