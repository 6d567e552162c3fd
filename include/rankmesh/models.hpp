// SPDX-License-Identifier: BSD-3-Clause
// Includes the model library (librankmesh-models), and with it the headers that most programs need.
// It leaves out exchange/objects.hpp, which needs cereal.
#pragma once

#include "rankmesh/rankmesh.hpp"

#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/exchange/checkpoint.hpp"
#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/exchange/kept_tensors.hpp"
#include "rankmesh/exchange/lockstep.hpp"
#include "rankmesh/exchange/message.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/exchange/sharded_buffer.hpp"
#include "rankmesh/exchange/stage_exchange.hpp"
#include "rankmesh/exchange/tensor_dict.hpp"
#include "rankmesh/exchange/work_list.hpp"
#include "rankmesh/helpers/broadcast_parameters.hpp"
#include "rankmesh/helpers/check_equal.hpp"
#include "rankmesh/helpers/global_norm.hpp"
#include "rankmesh/helpers/print.hpp"
#include "rankmesh/helpers/seed.hpp"
#include "rankmesh/helpers/stopwatch.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "rankmesh/transfer/relabel.hpp"
#include "rankmesh/transfer/stages.hpp"
#include "rankmesh/transfer/tensor_list.hpp"
