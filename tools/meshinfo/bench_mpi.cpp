// SPDX-License-Identifier: BSD-3-Clause
// meshinfo bench on a live mesh: nccl-tests' columns, one table per name and operation.
#include <algorithm>

#include <fmt/format.h>

#include "bench.hpp"
#include "launcher.hpp"
#include "measure.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/rankmesh.hpp"
#include "terminal.hpp"

namespace rankmesh::meshinfo {

using report::Json;

namespace {

// The result of one form of a call: out of place, or in place.
struct Figures {
  bool is_there = false;  // whether the operation has the form
  double seconds = 0, algbw = 0, busbw = 0;
  std::int64_t wrong = -1;  // not checked
};

// As nccl-tests define it: the factor from the algorithm's bandwidth to that of the bus.
double bus_factor(Operation operation, std::int64_t n) {
  const auto size = static_cast<double>(n);
  if (operation == Operation::all_reduce) return 2 * (size - 1) / size;
  return has_v_form(operation) ? (size - 1) / size : 1;
}

std::string columns(const Figures& f) {
  if (!f.is_there) return fmt::format("  {:>8} {:>7} {:>7} {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format("  {:>8.2f} {:>7.3f} {:>7.3f} {:>6}", f.seconds * 1e6, f.algbw, f.busbw,
                     f.wrong < 0 ? "N/A" : fmt::format("{}", f.wrong));
}

Json json_of(const Figures& f) {
  if (!f.is_there) return nullptr;
  return {{"time_us", f.seconds * 1e6},
          {"algbw", f.algbw},
          {"busbw", f.busbw},
          {"wrong", f.wrong < 0 ? Json() : Json(f.wrong)}};
}

// A line of a terminal cannot hold all columns, so those with the same value in every row are in
// the heading.
constexpr const char* narrow_header =
    "#                         out-of-place                          in-place\n"
    "#     size      time   algbw   busbw #wrong      time   algbw   busbw #wrong\n"
    "#      (B)      (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n";
constexpr std::size_t full_width = 118;  // of a row

constexpr const char* header =
    "#                                                      out-of-place                       "
    "in-place\n"
    "#       size       count      type   redop    root      time   algbw   busbw #wrong      time "
    "  algbw   busbw #wrong\n"
    "#        (B)  (elements)                                (us)  (GB/s)  (GB/s)             (us) "
    " (GB/s)  (GB/s)\n";

// The measurements of one job, and the document that they become.
class Bench {
 public:
  Bench(const OpenMesh& open, const BenchOptions& options, const BenchPlan& plan, Output* text);
  BenchResult run();

 private:
  void measure_name(const GroupFamily& family);
  void measure_operation(const GroupFamily& family, Operation operation, GroupCoordinator* group,
                         Measure& measure);
  Figures measure_form(Measure& measure, const BenchCase& work, bool in_place,
                       std::int64_t group_size);
  Json add_row(const GroupFamily& family, const BenchCase& work, const std::string& transport,
               const Figures (&forms)[2]);
  void say(std::string text);
  void show_progress(const GroupFamily& family, const BenchCase& work);

  Mesh& mesh_;
  const BenchOptions& options_;
  const BenchPlan& plan_;
  Output* text_;
  bool is_narrow_;
  Progress progress_;
  std::int64_t done_ = 0, total_ = 0;  // measurements
  BenchResult result_;
};

Bench::Bench(const OpenMesh& open, const BenchOptions& options, const BenchPlan& plan, Output* text)
    : mesh_{*open.mesh},
      options_{options},
      plan_{plan},
      text_{text},
      is_narrow_{text != nullptr && options.output.width() < full_width},
      // The rows show the progress themselves, unless they go elsewhere.
      progress_{is_printing_rank() && !(text != nullptr && options.output.is_on_terminal())} {
  result_.document.schema = "rankmesh.bench/1";
  result_.document.fields = {{"mesh", options.mesh.mesh}, {"world_size", mesh_.size()},
                             {"memory", options.memory},  {"warmup_iters", options.warm_up},
                             {"iters", options.repeats},  {"tables", Json::array()}};
  result_.document.table.add_columns({"name", "operation", "ranks", "groups", "size", "count",
                                      "type", "redop", "root", "transport", "form", "time us",
                                      "algbw", "busbw", "wrong"});
}

void Bench::say(std::string text) {
  if (text_ != nullptr) text_->write(text);
  result_.document.add(std::move(text));
}

Figures Bench::measure_form(Measure& measure, const BenchCase& work, bool in_place,
                            std::int64_t group_size) {
  if (!has_form(work, in_place)) return {};
  Figures figures{.is_there = true};
  if (options_.check != 0 && has_data(work.operation))
    figures.wrong = measure.wrong(work, in_place);
  figures.seconds = measure.time(work, in_place, options_.warm_up, options_.repeats);
  const double bytes = static_cast<double>(size_of(work, group_size).bytes);
  figures.algbw = figures.seconds > 0 ? bytes / figures.seconds / 1e9 : 0;
  figures.busbw = figures.algbw * bus_factor(work.operation, group_size);
  result_.wrong += std::max<std::int64_t>(figures.wrong, 0);
  return figures;
}

// Adds the text and the CSV of a row, and returns its JSON.
Json Bench::add_row(const GroupFamily& family, const BenchCase& work, const std::string& transport,
                    const Figures (&forms)[2]) {
  const auto [count, bytes] = size_of(work, family.group_size());
  const std::string redop =
      reduces(work.operation) ? std::string{to_string(work.reduction)} : "none";
  const std::int64_t root = has_root(work.operation) ? work.root : -1;
  say(is_narrow_
          ? fmt::format("{:>10}{}{}\n", bytes, columns(forms[0]), columns(forms[1]))
          : fmt::format("{:>12} {:>11} {:>9} {:>7} {:>7}{}{}\n", bytes, count, to_string(work.type),
                        redop, root, columns(forms[0]), columns(forms[1])));
  for (const Figures& f : forms)
    if (f.is_there)
      result_.document.table.rows.push_back(
          {family.name(), to_string(work.operation), family.group_size(), family.group_count(),
           bytes, count, to_string(work.type), redop, root, transport,
           &f == &forms[0] ? "out-of-place" : "in-place", f.seconds * 1e6, f.algbw, f.busbw,
           f.wrong < 0 ? Json() : Json(f.wrong)});
  return {{"size", bytes},
          {"count", count},
          {"type", to_string(work.type)},
          {"redop", redop},
          {"root", root},
          {"transport", transport},
          {"out_of_place", json_of(forms[0])},
          {"in_place", json_of(forms[1])}};
}

void Bench::measure_operation(const GroupFamily& family, Operation operation,
                              GroupCoordinator* group, Measure& measure) {
  const std::int64_t size = family.group_size();
  say(fmt::format("# {}: {} over {} ranks, {} group{} at once, {} memory\n", family.name(),
                  to_string(operation), size, family.group_count(),
                  family.group_count() == 1 ? "" : "s", options_.memory));
  say(is_narrow_ ? fmt::format("# type {}, redop {}, root {}\n{}", to_string(plan_.type),
                               to_string(plan_.reduction), options_.root, narrow_header)
                 : header);
  Json table{{"name", family.name()},
             {"operation", to_string(operation)},
             {"ranks", size},
             {"groups", family.group_count()},
             {"rows", Json::array()}};
  double sum = 0;
  int forms = 0;
  for (const std::int64_t bytes : plan_.sizes) {
    const BenchCase work{operation,    plan_.type, plan_.reduction,
                         plan_.memory, bytes,      options_.root};
    show_progress(family, work);
    const Figures figures[] = {measure_form(measure, work, false, size),
                               measure_form(measure, work, true, size)};
    for (const Figures& f : figures) {
      sum += f.busbw;
      forms += f.is_there ? 1 : 0;
    }
    std::string transport;  // of rank 0, if it is a member
    if (group != nullptr)
      transport =
          group->explain(operation, size_of(work, size).bytes, plan_.memory, plan_.type).transport;
    table["rows"].push_back(add_row(family, work, transport, figures));
    ++done_;
    if (!has_data(operation)) break;  // it has no sizes
  }
  say(fmt::format("# Avg bus bandwidth    : {:.4f}\n#\n", forms == 0 ? 0 : sum / forms));
  result_.document.fields["tables"].push_back(std::move(table));
}

void Bench::measure_name(const GroupFamily& family) {
  const std::int64_t size = family.group_size();
  if (options_.root < 0 || options_.root >= size)
    throw UsageError{
        fmt::format("-r {}: the groups of '{}' have {} ranks", options_.root, family.name(), size),
        "give a rank in group, counted from 0"};
  auto* group = family.find(mesh_.rank()) ? &mesh_[family.name()] : nullptr;
  Measure measure{group, size, plan_.sizes.back(), plan_.memory};
  for (const Operation operation : plan_.operations)
    measure_operation(family, operation, group, measure);
}

void Bench::show_progress(const GroupFamily& family, const BenchCase& work) {
  progress_.show_step(done_, total_, progress_text(family.name(), work.operation, work.bytes));
}

BenchResult Bench::run() {
  for (const auto& family : mesh_.plan().families())
    if (is_measured(family, mesh_.size(), options_)) total_ += measurements_of(plan_);
  for (const auto& family : mesh_.plan().families())
    if (is_measured(family, mesh_.size(), options_)) measure_name(family);
  say(fmt::format("# Out of bounds values : {} {}\n", result_.wrong,
                  result_.wrong == 0 ? "OK" : "FAILED"));
  result_.document.fields["wrong"] = result_.wrong;
  progress_.finish(fmt::format("bench: {} sizes in {}, {} wrong elements", done_,
                               duration_text(progress_.seconds()), result_.wrong));
  return std::move(result_);
}

}  // namespace

BenchResult bench(const OpenMesh& open, const BenchOptions& options, const BenchPlan& plan,
                  Output* text) {
  if (plan.memory == MemoryKind::device && !open.mesh->device())
    throw NoDeviceError{fmt::format("bench --memory device: {}", open.mesh->why_no_device()),
                        "use --memory host"};
  for (const std::string& name : options.names) (void)open.plan.index_of(name);
  return Bench{open, options, plan, text}.run();
}

}  // namespace rankmesh::meshinfo
