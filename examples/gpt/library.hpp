// SPDX-License-Identifier: BSD-3-Clause
// All that the program uses of rankmesh.
#pragma once

#include <rankmesh/exchange/bucket.hpp>
#include <rankmesh/exchange/expert_dispatcher.hpp>
#include <rankmesh/exchange/sharded_buffer.hpp>
#include <rankmesh/rankmesh.hpp>

#include "values.hpp"

using rankmesh::Mesh;
using rankmesh::ReduceOp;
using rankmesh::Slice;
using rankmesh::Work;
using rankmesh::exchange::Bucket;
using rankmesh::exchange::ExpertDispatcher;
using rankmesh::exchange::ExpertMap;
using rankmesh::exchange::ExpertRoute;
/// A message that is being sent, and its values.
using Message = rankmesh::OwningWork<Values>;
/// A set of ranks that communicate, such as the members of tp.
using Group = rankmesh::GroupCoordinator;
using ShardedBuffer = rankmesh::exchange::ShardedBuffer<Real>;
