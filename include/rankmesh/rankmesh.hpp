// SPDX-License-Identifier: BSD-3-Clause
// Includes the headers that most programs need.
#pragma once

// These headers come first, so that the compiler lists few files in errors about their functions.
#include "rankmesh/base/index.hpp"
#include "rankmesh/group/detail/refuse.hpp"
#include "rankmesh/group/work.hpp"

#include "rankmesh/base/error.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/mesh/nccl_group.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "rankmesh/run.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "rankmesh/version.hpp"
