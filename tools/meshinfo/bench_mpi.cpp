// meshinfo bench on a live mesh: nccl-tests' columns, one table per name and operation.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench_options.hpp"
#include "measure.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/rankmesh.hpp"

namespace meshinfo {

using rankmesh::Operation;

namespace {

struct Figures {
  bool is_there = false;
  double seconds = 0, algbw = 0, busbw = 0;
  std::int64_t wrong = -1;  // not checked
};

// nccl-tests: by how much more the bus carries than the algorithm's bandwidth says.
double bus_factor(Operation operation, std::int64_t n) {
  const auto size = static_cast<double>(n);
  switch (operation) {
    case Operation::all_reduce:
      return 2 * (size - 1) / size;
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::gather:
    case Operation::scatter:
    case Operation::all_to_all:
      return (size - 1) / size;
    case Operation::barrier:
    case Operation::broadcast:
    case Operation::reduce:
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      return 1;
  }
  return 1;
}

bool is_rooted(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce ||
         operation == Operation::gather || operation == Operation::scatter;
}

Figures measured(Measure& measure, const Work& work, bool in_place, std::int64_t group_size,
                 const BenchOptions& options) {
  if (!Measure::has_form(work, in_place)) return {};
  Figures figures{.is_there = true};
  if (options.check != 0 && work.operation != Operation::barrier)
    figures.wrong = measure.wrong(work, in_place);
  figures.seconds = measure.time(work, in_place, options.warm_up, options.repeats);
  const double bytes = static_cast<double>(Measure::size_of(work, group_size).bytes);
  figures.algbw = figures.seconds > 0 ? bytes / figures.seconds / 1e9 : 0;
  figures.busbw = figures.algbw * bus_factor(work.operation, group_size);
  return figures;
}

std::string columns(const Figures& f) {
  if (!f.is_there) return fmt::format("  {:>8} {:>7} {:>7} {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format("  {:>8.2f} {:>7.3f} {:>7.3f} {:>6}", f.seconds * 1e6, f.algbw, f.busbw,
                     f.wrong < 0 ? "N/A" : fmt::format("{}", f.wrong));
}

nlohmann::ordered_json json_of(const Figures& f) {
  if (!f.is_there) return nullptr;
  nlohmann::ordered_json json{
      {"time_us", f.seconds * 1e6}, {"algbw", f.algbw}, {"busbw", f.busbw}, {"wrong", nullptr}};
  if (f.wrong >= 0) json["wrong"] = f.wrong;
  return json;
}

constexpr const char* header =
    "#                                                      out-of-place                       "
    "in-place\n"
    "#       size       count      type   redop    root      time   algbw   busbw #wrong      time "
    "  algbw   "
    "busbw #wrong\n"
    "#        (B)  (elements)                                (us)  (GB/s)  (GB/s)             (us) "
    " (GB/s)  "
    "(GB/s)\n";

}  // namespace

int bench(rankmesh::Mesh& mesh, const BenchOptions& options, const BenchPlan& plan) {
  if (plan.memory == rankmesh::MemoryKind::device && !mesh.device())
    throw rankmesh::NoDeviceError{fmt::format("bench --memory device: {}", mesh.why_no_device()),
                                  "use --memory host"};
  for (const std::string& name : options.names) (void)mesh.plan().index_of(name);
  const bool prints = mesh.rank() == rankmesh::Rank{0};
  const std::unique_ptr<Output> output = open_output(options.path);
  const auto say = [&](const std::string& text) {
    if (prints && !options.json) output->write(text);
  };
  nlohmann::ordered_json json{{"schema", "rankmesh.bench/1"},
                              {"mesh", options.mesh.mesh},
                              {"world_size", mesh.size()},
                              {"memory", options.memory},
                              {"warmup_iters", options.warm_up},
                              {"iters", options.repeats},
                              {"tables", nlohmann::ordered_json::array()}};
  std::int64_t wrong = 0;
  for (const auto& family : mesh.plan().families()) {
    const bool is_asked = options.names.empty() ||
                          std::ranges::find(options.names, family.name()) != options.names.end();
    if (!is_asked || family.group_size() == 1 ||
        family.coverage(mesh.size()) == rankmesh::Coverage::overlapping)
      continue;
    const std::int64_t size = family.group_size();
    if (options.root < 0 || options.root >= size)
      throw rankmesh::UsageError{
          fmt::format("-r {}: the groups of '{}' have {} ranks", options.root, family.name(), size),
          "a root is a rank in group, from 0 on"};
    auto* group = family.find(mesh.rank()) ? &mesh[family.name()] : nullptr;
    Measure measure{group, size, plan.sizes.back(), plan.memory};
    for (const Operation operation : plan.operations) {
      say(fmt::format("# {}: {} over {} ranks, {} group{} at once, {} memory\n{}", family.name(),
                      to_string(operation), size, family.group_count(),
                      family.group_count() == 1 ? "" : "s", options.memory, header));
      nlohmann::ordered_json table{{"name", family.name()},
                                   {"operation", to_string(operation)},
                                   {"ranks", size},
                                   {"groups", family.group_count()},
                                   {"rows", nlohmann::ordered_json::array()}};
      double sum = 0;
      int rows = 0;
      for (const std::int64_t bytes : plan.sizes) {
        const Work work{operation, plan.type, plan.reduction, plan.memory, bytes, options.root};
        const Figures apart = measured(measure, work, false, size, options);
        const Figures in_place = measured(measure, work, true, size, options);
        for (const Figures& f : {apart, in_place}) {
          wrong += std::max<std::int64_t>(f.wrong, 0);
          if (f.is_there) {
            sum += f.busbw;
            ++rows;
          }
        }
        const auto actual = Measure::size_of(work, size);
        const std::string redop =
            reduces(operation) ? std::string{to_string(plan.reduction)} : "none";
        const std::int64_t root = is_rooted(operation) ? options.root : -1;
        say(fmt::format("{:>12} {:>11} {:>9} {:>7} {:>7}{}{}\n", actual.bytes, actual.count,
                        to_string(plan.type), redop, root, columns(apart), columns(in_place)));
        std::string transport;  // of rank 0, where it is a member
        if (group != nullptr)
          transport = group->explain(operation, actual.bytes, plan.memory, plan.type).transport;
        table["rows"].push_back({{"size", actual.bytes},
                                 {"count", actual.count},
                                 {"type", to_string(plan.type)},
                                 {"redop", redop},
                                 {"root", root},
                                 {"transport", transport},
                                 {"out_of_place", json_of(apart)},
                                 {"in_place", json_of(in_place)}});
        if (operation == Operation::barrier) break;  // it has no sizes
      }
      say(fmt::format("# Avg bus bandwidth    : {:.4f}\n#\n", rows == 0 ? 0 : sum / rows));
      json["tables"].push_back(std::move(table));
    }
  }
  say(fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED"));
  if (prints) {
    json["wrong"] = wrong;
    if (options.json) output->write(json.dump(2) + "\n");
    output->finish();
  }
  return wrong == 0 ? ok : check_failed;
}

}  // namespace meshinfo
