// meshinfo without MPI: a job can be named, not joined.
#include "bench_options.hpp"
#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {

int run_in_job(const Request&) {
  throw rankmesh::UsageError{
      "this meshinfo was built without MPI and cannot look at the job that it runs in",
      "add --offline, or build rankmesh with MPI"};
}

std::optional<rankmesh::RouteExplanation> explain_route(rankmesh::Mesh&, const std::string&,
                                                        const rankmesh::RouteQuery&) {
  return std::nullopt;  // there is no live mesh to ask
}
rankmesh::Placement placement_of(const rankmesh::Mesh&) { return rankmesh::Placement{{}}; }

// Never called: there is no live mesh.
int bench(rankmesh::Mesh&, const BenchOptions&, const BenchPlan&) { return wrong_usage; }
int tune(rankmesh::Mesh&, const BenchOptions&, const BenchPlan&) { return wrong_usage; }

std::vector<Component> components() {
  return {{"MPI", "", "", "this meshinfo was built without it"}};
}

}  // namespace meshinfo
