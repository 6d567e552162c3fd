// SPDX-License-Identifier: BSD-3-Clause
// What every snippet of the documentation assumes; precompiled once for all pages.
#include <doctest/doctest.h>
#include <rankmesh/rankmesh.hpp>
