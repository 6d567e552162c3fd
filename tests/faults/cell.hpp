// SPDX-License-Identifier: BSD-3-Clause
// A cell of the fault matrix: one mistake, at one size, on one rank of a mesh.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"

namespace faults {

using namespace rankmesh;

/// Says how the ranks of a cell must end. scripts/fault-matrix judges by it.
enum class Expected : std::uint8_t {
  named,     ///< MismatchError with one text on every rank; it holds both calls, the outlier first.
  at_close,  ///< The same, at the latest in close(), with the numbers of calls of the ranks.
  told,      ///< An error of rankmesh on every rank; its text holds both calls.
  usage,     ///< UsageError on the odd rank; the others get an error that names the odd rank.
  pair,      ///< Rank 0 and the odd rank as in `named`; the others may end with any error.
  works,     ///< No error, and correct data.
  works_or_named,  ///< One of the two.
};
std::string_view to_string(Expected expected);

/// Holds what the command line of the program says about its cells.
struct Settings {
  double deadline = 0;  ///< MeshOptions::deadline in seconds; 0: none
  double timeout = 3;   ///< MeshOptions::timeout in seconds
  double limit = 9;     ///< A cell that lasts longer hangs.
  bool is_async = false;
  int odd = -1;  ///< The rank that makes the mistake; -1: the last.
};

/// Holds what a rank knows about the end of a cell.
struct Outcome {
  std::string name = "ok";  ///< "ok", the class of the exception, or "hung"
  std::string at = "open";  ///< The step of the cell: open, warm-up, fault, good 1, good 2, close.
  std::string wrong;        ///< Where data was wrong first; empty if it was correct.
  std::string text;         ///< The message of the exception
  std::vector<std::string> odd;   ///< Words that describe the call of the odd rank
  std::vector<std::string> good;  ///< Words that describe the call of the other ranks
};

/// Returns the outcome of a rank that ends with this exception.
Outcome outcome_of(const std::exception& error);

/// A cell while it runs. The functions that make a mistake get it.
class Cell {
 public:
  Cell(const Settings& settings, Outcome& outcome, std::int64_t bytes);

  const Settings& settings;
  Outcome& outcome;
  std::int64_t bytes;
  MPI_Comm world = MPI_COMM_NULL;
  MeshOptions options;
  int rank = 0, size = 0, odd = 0;
  Mesh* mesh = nullptr;
  GroupCoordinator* group = nullptr;  ///< The group that contains all ranks, where there is one.

  [[nodiscard]] bool is_odd() const { return rank == odd; }
  /// Returns the first argument on the odd rank, and the second one on the other ranks.
  template <class T>
  [[nodiscard]] T pick(T on_odd, T elsewhere) const {
    return is_odd() ? on_odd : elsewhere;
  }
  /// Returns the number of floats of this size.
  [[nodiscard]] std::size_t floats() const { return static_cast<std::size_t>(bytes) / 4; }
  /// Returns the number of floats per member, at least 2.
  [[nodiscard]] std::size_t block() const;
  /// Says which words must describe the two calls.
  void expect(std::vector<std::string> on_odd, std::vector<std::string> elsewhere) const;
  void expect(std::string_view operation) const;

  /// Returns memory that stays valid if the cell fails, because MPI may still use it then.
  template <class T>
  [[nodiscard]] std::span<T> memory(std::size_t count, T value = T(1)) {
    auto owner = std::make_shared<std::vector<T>>(count, value);
    kept_.push_back(owner);
    return *owner;
  }
  /// Keeps the memory until the process ends.
  void leak() { new std::vector<std::shared_ptr<void>>(std::move(kept_)); }

  /// Notes that the data of a call is wrong, unless an earlier call had wrong data.
  void wrong(std::string_view what) const;
  /// Makes an all_reduce that every rank makes alike, and checks its result.
  void good(GroupCoordinator& in, std::size_t count, int salt);
  void good(std::size_t count, int salt) { good(*group, count, salt); }
  /// Returns the number of elements of the good calls that follow the mistake.
  [[nodiscard]] std::size_t good_count() const { return floats() + 8; }

 private:
  std::vector<std::shared_ptr<void>> kept_;
};

/// A kind of mistake.
struct Kind {
  std::string name;
  Expected expected = Expected::named;
  std::function<void(Cell&)> fault;
  std::string mesh = "tp=auto";
  int min_ranks = 2;
  bool has_one_size = false;  ///< The mistake does not depend on the size.
  bool needs_check = false;   ///< It is found only with RANKMESH_CHECK=1.
};
using Kinds = std::vector<Kind>;

Kinds counts();
Kinds blocks();
Kinds types();
Kinds roots();
Kinds other_operations();
Kinds orders();
Kinds forms();
Kinds spans();
Kinds messages();
Kinds dynamic_groups();
Kinds exchanges();
Kinds late_members();
Kinds checkpoints();

/// Returns all kinds.
const Kinds& all_kinds();
/// Returns the kind, or null.
const Kind* find_kind(std::string_view name);
/// Writes the names and properties of all kinds to stdout.
void list_kinds();

/// Runs one cell: opens a mesh on `world`, makes good calls, the mistake and good calls again, and
/// closes the mesh. Returns after the first exception.
void run_cell(const Kind& kind, const Settings& settings, std::int64_t bytes, MPI_Comm world,
              Outcome& outcome);

}  // namespace faults
