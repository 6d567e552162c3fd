// The job that a multi-rank test runs in.
#pragma once

namespace rankmesh_test {

int rank();
int size();

}  // namespace rankmesh_test
