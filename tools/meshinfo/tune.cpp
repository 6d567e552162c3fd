#include "bench_options.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {

void add_tune(CLI::App& app, int& status) {
  auto options = std::make_shared<BenchOptions>();
  options->operations = {"all"};
  options->repeats = 50;
  CLI::App* command = app.add_subcommand(
      "tune", "in a job: measure the transports and write the routes that follow");
  options->mesh.add_to(*command);
  command->add_option("--op", options->operations, "operations (default: all)")->delimiter(',');
  command->add_option("--dim", options->names, "only these names (default: all)")->delimiter(',');
  command->add_option("-b,--minbytes", options->from, "smallest size, K, M and G (default 8)");
  command->add_option("-e,--maxbytes", options->to, "largest size (default 4M)");
  add_number(*command, "-f,--stepfactor", "go up by this factor (default 2)",
             [options](std::int64_t n) { options->factor = n; });
  add_number(*command, "-n,--iters", "calls that are timed together (default 50)",
             [options](std::int64_t n) { options->repeats = n; });
  add_number(*command, "-w,--warmup_iters", "calls before (default 5)",
             [options](std::int64_t n) { options->warm_up = n; });
  command->add_option("-o,--output", options->path,
                      "the route file to write: .routes, or .toml for the mesh with its routes");
  command->callback([options, &status] {
    const BenchPlan plan = understood(*options);
    int result = ok;
    Request request{options->mesh, true,
                    [&](const rankmesh::MeshPlan&, const rankmesh::report::LiveFacts* live) {
                      if (live == nullptr)
                        throw rankmesh::UsageError{
                            "tune measures a job, and this is none",
                            "start it in one: mpirun -n 4 meshinfo tune tp=4"};
                      return result;
                    }};
    request.with_mesh = [&](rankmesh::Mesh& mesh) { result = tune(mesh, *options, plan); };
    status = run(request);
  });
}

}  // namespace meshinfo
