// SPDX-License-Identifier: BSD-3-Clause
// What librankmesh exports for the model library and meshinfo alone (docs/design.md). Such symbols
// may change in every version, so both libraries must be of the same version (lib/models.cpp).
#pragma once

/// Marks a function where it is defined.
#define RANKMESH_PRIVATE_API __attribute__((visibility("default")))
