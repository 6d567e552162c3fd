// meshinfo without MPI: a job can be named, not joined.
#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {

int run_in_job(const Request&) {
  throw rankmesh::UsageError{"this meshinfo was built without MPI and cannot look at the job that it runs in",
                             "add --offline, or build rankmesh with MPI"};
}

std::vector<Component> components() { return {{"MPI", "", "", "this meshinfo was built without it"}}; }

}  // namespace meshinfo
